"""The `pip` extension of rules_python 2.x, on the machine's pip."""

load("//python/air_gapped:lock.bzl", "parse_lock")
load("//python/air_gapped:wheel.bzl", "hub_repository", "wheel_repository")

def _pip_impl(mctx):
    for mod in mctx.modules:
        for tag in mod.tags.parse:
            lock_name = str(tag.requirements_lock).removeprefix("@@")
            wheels = {}
            for name, package in parse_lock(mctx.read(tag.requirements_lock), lock_name).items():
                repository = "{}_{}".format(tag.hub_name, name)
                wheels[name] = repository
                wheel_repository(
                    name = repository,
                    extra_pip_args = tag.extra_pip_args,
                    extras = package.extras,
                    hashes = package.hashes,
                    hub = tag.hub_name,
                    python_version = tag.python_version,
                    quiet = tag.quiet,
                    requirement = package.requirement,
                    timeout = tag.timeout,
                )
            hub_repository(
                name = tag.hub_name,
                lock = lock_name,
                wheels = wheels,
            )

pip = module_extension(
    implementation = _pip_impl,
    tag_classes = {
        "parse": tag_class(attrs = {
            "download_only": attr.bool(),
            "extra_pip_args": attr.string_list(),
            "hub_name": attr.string(mandatory = True),
            "python_version": attr.string(mandatory = True),
            "quiet": attr.bool(default = True),
            "requirements_lock": attr.label(mandatory = True),
            "timeout": attr.int(default = 600),
        }),
    },
)
