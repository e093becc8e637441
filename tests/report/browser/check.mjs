// Looks at every page of a folder in a headless browser: node check.mjs PAGES SHOTS
// Ends with `N passed, N failed`. browser_check.py calls it.

import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const VIEWS = [
  { width: 375, scheme: "light" },
  { width: 1280, scheme: "light" },
  { width: 1280, scheme: "dark" },
];
const SMALLEST_LETTERS = 10.5; // px, on the screen
const SMALLEST_PRINT = 9.5; // CSS px on A4, 7 points

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
let passed = 0;
let failed = 0;

function report(name, problems) {
  if (problems.length === 0) passed += 1;
  else failed += 1;
  console.log(`${name}: ${problems.length === 0 ? "ok" : "FAILED"}`);
  for (const problem of problems.slice(0, 10)) console.log(`    ${problem}`);
}

async function executable() {
  if (process.env.CHROME_BIN) return process.env.CHROME_BIN;
  const packed = await import("@sparticuz/chromium");
  return packed.default.executablePath();
}

// What is drawn outside of where it belongs; runs in the page.
function misplaced(smallest) {
  const problems = [];
  const edge = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > edge) {
    problems.push(`the page is ${document.documentElement.scrollWidth} px wide, the screen ${edge}`);
  }
  for (const element of document.querySelectorAll("main *, header *")) {
    const box = element.getBoundingClientRect();
    if (box.width > 0 && box.right > edge + 1) problems.push(`<${element.tagName}> ends at ${box.right} px`);
  }
  for (const group of document.querySelectorAll("svg g:has(> rect):has(> text)")) {
    const frame = group.querySelector("rect").getBoundingClientRect();
    const text = group.querySelector("text").getBoundingClientRect();
    const inside =
      text.left >= frame.left && text.right <= frame.right && text.top >= frame.top - 1 && text.bottom <= frame.bottom + 1;
    if (!inside) problems.push(`'${group.textContent}' is larger than its box`);
  }
  for (const picture of document.querySelectorAll("svg[role=img]")) {
    const frame = picture.getBoundingClientRect();
    const boxes = [...picture.querySelectorAll("g > rect")].map((item) => item.getBoundingClientRect());
    for (const [index, one] of boxes.entries()) {
      for (const other of boxes.slice(index + 1)) {
        const apart =
          one.right <= other.left + 0.5 || other.right <= one.left + 0.5 ||
          one.bottom <= other.top + 0.5 || other.bottom <= one.top + 0.5;
        if (!apart) problems.push(`two boxes overlap in '${picture.querySelector("title").textContent}'`);
      }
    }
    for (const text of picture.querySelectorAll("text")) {
      const box = text.getBoundingClientRect();
      if (box.right > frame.right + 1) problems.push(`'${text.textContent}' leaves its picture`);
      const size = (parseFloat(getComputedStyle(text).fontSize) * frame.width) / picture.viewBox.baseVal.width;
      if (size < smallest) problems.push(`'${text.textContent}' has letters of ${size.toFixed(1)} px`);
    }
  }
  return problems;
}

async function violations(page) {
  await page.evaluate(axe);
  const found = await page.evaluate(() => window.axe.run());
  return found.violations.flatMap((rule) => rule.nodes.map((node) => `${rule.id}: ${node.html.slice(0, 120)}`));
}

// What the keyboard can do: the skip link comes first, and an arrow changes what colours tell.
async function keyboard(page) {
  const problems = [];
  await page.keyboard.press("Tab");
  const first = await page.evaluate(() => {
    const focused = document.activeElement;
    return { words: focused.textContent, left: focused.getBoundingClientRect().left };
  });
  if (first.words !== "Skip to the plan" || first.left < 0) problems.push(`first comes '${first.words}'`);
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  const fills = () =>
    page.evaluate(() => [...document.querySelectorAll(".nodes rect")].map((rect) => getComputedStyle(rect).fill).join());
  const before = await fills();
  await page.keyboard.press("ArrowDown");
  if ((await fills()) === before) problems.push("an arrow key on the choice of colours changes nothing");
  await page.focus("summary");
  await page.keyboard.press("Enter");
  if (!(await page.evaluate(() => document.querySelector("details").open))) {
    problems.push("Enter does not unfold the first fold");
  }
  return problems;
}

const [pages, shots] = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath: await executable(),
  args: ["--no-sandbox", "--disable-gpu", "--font-render-hinting=none"],
});
console.log(`browser ${browser.version()}`);
const names = readdirSync(pages).filter((name) => name.endsWith(".html")).sort();
for (const name of names) {
  const stem = name.replace(/\.html$/, "");
  for (const { width, scheme } of VIEWS) {
    const page = await browser.newPage({ viewport: { width, height: 800 }, colorScheme: scheme });
    const heard = [];
    page.on("console", (message) => heard.push(`console: ${message.text()}`));
    page.on("pageerror", (error) => heard.push(`error: ${error.message}`));
    page.on("request", (request) => {
      if (!request.url().startsWith("file:")) heard.push(`request: ${request.url()}`);
    });
    await page.goto(pathToFileURL(join(pages, name)).href);
    await page.screenshot({ path: join(shots, `${stem}.${width}.${scheme}.png`), fullPage: true });
    const seen = await page.evaluate(misplaced, SMALLEST_LETTERS);
    report(`${stem} at ${width} px, ${scheme}`, [...heard, ...seen, ...(await violations(page))]);
    if (width === 1280 && scheme === "light") {
      report(`${stem} by keyboard`, await keyboard(page));
    }
    await page.close();
  }
  const printed = await browser.newPage({ viewport: { width: 688, height: 1000 }, colorScheme: "dark" });
  await printed.goto(pathToFileURL(join(pages, name)).href);
  await printed.emulateMedia({ media: "print" });
  const problems = await printed.evaluate(misplaced, SMALLEST_PRINT);
  const folded = await printed.evaluate(() =>
    [...document.querySelectorAll("details td")].filter((cell) => !cell.checkVisibility()).length,
  );
  if (folded > 0) problems.push(`${folded} cells stay folded in print`);
  const paper = await printed.evaluate(() => getComputedStyle(document.body).backgroundColor);
  if (paper !== "rgb(255, 255, 255)") problems.push(`it prints on ${paper}`);
  await printed.pdf({ path: join(shots, `${stem}.pdf`), format: "A4", printBackground: true });
  report(`${stem} in print`, problems);
  await printed.close();
}
await browser.close();
if (names.length !== 3) report("three pages", [`found ${names.length}`]);
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
