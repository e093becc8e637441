"""The style sheet of the report."""

from tools.launcher.render.report_cluster import colour_rules

_RULES = """
:root{color-scheme:light dark;
--paper:#fff;--ink:#1b1f24;--soft:#525a65;--line:#d5dae0;--edge:#8a939e;--plain:#eef0f3;--link:#0b57b0;
--good:#1a6b34;--warn:#8a4b00;--panel:#f6f7f9;
--f0:#d5e6fb;--s0:#3b74b9;--f1:#fde3c4;--s1:#b66a11;--f2:#d3efd9;--s2:#2f8049;--f3:#f9d9e8;--s3:#b1477f;
--f4:#f5efb9;--s4:#83780c;--f5:#e3dcf7;--s5:#7356bd;--f6:#c9eeee;--s6:#1f7e83;--f7:#e6e0d8;--s7:#7a6c58}
@media screen and (prefers-color-scheme:dark){:root{
--paper:#14171b;--ink:#e8eaed;--soft:#a9b2bd;--line:#343b44;--edge:#79838f;--plain:#242a31;--link:#8ab8f5;
--good:#7fd39a;--warn:#f0b36a;--panel:#1c2127;
--f0:#1d3a5f;--s0:#6fa5e2;--f1:#553512;--s1:#e0a04d;--f2:#1c4529;--s2:#69b884;--f3:#552440;--s3:#e58cb8;
--f4:#454011;--s4:#cdc04c;--f5:#392d63;--s5:#ab95ea;--f6:#154546;--s6:#5fbfc4;--f7:#3e382f;--s7:#b9aa94}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:74rem;padding:1rem 1rem 3rem;background:var(--paper);color:var(--ink);
font:1rem/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
h1{font-size:1.5rem;line-height:1.25;margin:.5rem 0 .25rem;overflow-wrap:anywhere}
h2{font-size:1.2rem;margin:2.5rem 0 .75rem;padding-top:.75rem;border-top:1px solid var(--line)}
p{margin:.5rem 0;max-width:46rem}
a{color:var(--link)}
code{font:.86em/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;
overflow-wrap:anywhere}
.lead,.note{color:var(--soft)}
.note{font-size:.875rem}
.skip{position:absolute;left:-99rem}
.skip:focus{left:1rem;top:.5rem;background:var(--paper);padding:.5rem}
nav ul{display:flex;flex-wrap:wrap;gap:.25rem 1rem;list-style:none;margin:.75rem 0 0;padding:0;
font-size:.9rem}
nav a{display:inline-block;padding:.2rem 0}
:focus-visible{outline:3px solid var(--link);outline-offset:2px}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr));gap:.75rem;
list-style:none;padding:0;margin:1rem 0}
.facts li{background:var(--panel);border:1px solid var(--line);border-radius:6px;padding:.6rem .75rem;
overflow-wrap:anywhere}
.facts strong{display:block;font-size:1.3rem;line-height:1.3}
.facts span{font-size:.85rem;color:var(--soft)}
table{border-collapse:collapse;width:100%;margin:1rem 0;font-size:.9rem}
caption{text-align:left;font-weight:600;padding:.25rem 0}
th,td{text-align:left;vertical-align:top;padding:.35rem .75rem .35rem 0;border-bottom:1px solid var(--line);
overflow-wrap:anywhere}
th{font-weight:500}
thead th{font-size:.8rem;color:var(--soft);overflow-wrap:normal}
tbody th{width:34%}
.settings tbody th{width:62%}
.ids tbody th{width:6rem}
h3{font-size:1rem;margin:1rem 0 .5rem}
details{margin:.75rem 0;border:1px solid var(--line);border-radius:6px;padding:.5rem .75rem}
summary{cursor:pointer;font-weight:500;padding:.1rem 0;color:var(--ink)}
.chooser{border:1px solid var(--line);border-radius:6px;margin:1rem 0;padding:.4rem .75rem .6rem;
font-size:.9rem;display:flex;flex-wrap:wrap;gap:.25rem 1.25rem}
.chooser legend{padding:0 .35rem;color:var(--soft)}
.chooser label{padding:.2rem 0}
.nodes{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,20.5rem),1fr));gap:1.25rem 1.5rem;
list-style:none;padding:0;margin:1rem 0}
.nodes li{break-inside:avoid}
svg{display:block;width:100%;height:auto;max-width:30rem}
svg text{font-size:11px;fill:var(--ink)}
.graph,.tokens{max-width:26rem}
.graph text,.tokens text{font-size:12px}
.b{font-weight:600}
figure{margin:1rem 0}
rect{fill:var(--f,var(--plain));stroke:var(--s,var(--edge));stroke-width:1.2}
.engine rect{stroke-dasharray:5 2}
.reference rect{stroke-dasharray:1.5 2}
.i rect{fill:none;stroke-dasharray:2 4}
.soft{fill:url(#hatch);stroke:var(--s1)}
.hatch{stroke:var(--s1);stroke-width:1.6;fill:none}
.swatch{display:inline-block;width:1em;height:1em;vertical-align:-.12em}
.there rect{fill:var(--plain);stroke-dasharray:4 3}
.made rect{fill:var(--f0);stroke:var(--s0)}
.edge{fill:none;stroke:var(--edge);stroke-width:1.5}
.head{fill:var(--edge)}
.flow{display:flex;flex-wrap:wrap;gap:.5rem 0;list-style:none;padding:0;margin:1rem 0}
.flow li{display:flex;align-items:stretch}
.op{display:flex;flex-direction:column;justify-content:center;width:6.6rem;padding:0 .5rem;font-size:.85rem;
color:var(--soft);text-align:center;line-height:1.3}
.op::after{content:"→" / "";font-size:1.3rem;line-height:1;color:var(--edge)}
.box{width:8.6rem;background:var(--panel);border:1px solid var(--line);border-left:4px solid var(--s0);
border-radius:6px;padding:.5rem .7rem}
.box strong{font-size:1.25rem}
.box .note,td .note{display:block;line-height:1.35}
@media (max-width:72rem){
.flow,.flow li{flex-direction:column}
.op{width:auto;flex-direction:row-reverse;justify-content:flex-end;gap:.6rem;padding:.4rem .4rem}
.op::after{content:"↓" / ""}
.box{width:auto;max-width:24rem}}
.warnings{list-style:none;padding:0}
.warnings li{border-left:4px solid var(--warn);background:var(--panel);padding:.5rem .75rem;margin:.5rem 0;
overflow-wrap:anywhere}
.warnings strong{display:block;color:var(--warn)}
footer{margin-top:2.5rem;border-top:1px solid var(--line);
padding-top:.75rem;color:var(--soft);font-size:.85rem}
@page{size:A4;margin:14mm}
@media print{
:root{color-scheme:light}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}
body{max-width:none;padding:0;font-size:10pt}
nav,.chooser,.skip{display:none}
h2,caption,thead{break-after:avoid}
th,td{padding-top:.15rem;padding-bottom:.15rem}
p,.note,.box,.op{line-height:1.3}
.op{padding:.1rem .4rem}
.flow{gap:.15rem}
.facts strong{font-size:1.1rem}
tr,li,figure{break-inside:avoid}
.nodes{grid-template-columns:1fr 1fr;gap:.9rem 1.2rem}
details::details-content{content-visibility:visible;height:auto;display:block}
a{color:inherit;text-decoration:none}}
"""


def style_sheet() -> str:
    """Return the whole style sheet; it loads nothing."""
    return f"{_RULES.strip()}\n{colour_rules()}\n"
