# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel, as PEP 517 describes: CMake installs byoc into it. Needs only
the tools that build byoc.

    byoc/            the package, installed with the prefix byoc/ of the wheel
    byoc/bin, lib    the command, the libraries, oneDNN's plug-in
    byoc/lib/*.so    the distribution's libraries that these need
    byoc/licenses    the licenses of byoc and of the distribution's libraries

CMake also gets the options in the environment variable CMAKE_ARGS.
"""

from __future__ import annotations

import base64
import hashlib
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
import zipfile

TOP = pathlib.Path(__file__).resolve().parents[2]
# libraries that are not bundled, since every Linux system has them
SYSTEM = r"ld-linux|linux-vdso|lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s)\.so"


def version() -> str:
    text = (TOP / "CMakeLists.txt").read_text()
    return re.search(r"project\(byoc VERSION ([0-9.]+)", text)[1]


def metadata() -> str:
    return (
        f"Metadata-Version: 2.1\nName: byoc\nVersion: {version()}\n"
        "Summary: Compile ONNX models for backends' kernels, and run them\n"
        "License: Apache-2.0\nRequires-Python: >=3.11\n"
        "Classifier: Typing :: Typed\nClassifier: Operating System :: POSIX :: Linux\n"
        "Provides-Extra: numpy\nRequires-Dist: numpy; extra == 'numpy'\n"
        "Description-Content-Type: text/markdown\n\n"
        + (TOP / "docs/python.md").read_text()
    )


def run(*command: object) -> str:
    return subprocess.run(
        [str(part) for part in command], check=True, text=True, stdout=subprocess.PIPE
    ).stdout


def install(package: pathlib.Path) -> None:
    """Build, and install into the package's folder."""
    build = TOP / "build" / "wheel"
    run(
        "cmake", "-S", TOP, "-B", build, "-G", "Ninja", "-DBYOC_TESTS=OFF",
        # compiled like the preset release
        "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
        "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O2 -g1 -DNDEBUG", "-DCMAKE_INSTALL_LIBDIR=lib",
        "-DCMAKE_INSTALL_PREFIX=/byoc", "-DBYOC_PYTHON_DIR=..",
        # DT_RPATH, which also applies to the libraries that oneDNN needs
        "-DCMAKE_MODULE_LINKER_FLAGS=-Wl,--disable-new-dtags",
        *shlex.split(os.environ.get("CMAKE_ARGS", "")),
    )  # fmt: skip
    run("cmake", "--build", build, "--target", "product")
    run("cmake", "--install", build, "--prefix", package, "--strip")
    for name in ("share", "include", "lib/cmake", "lib/pkgconfig"):
        shutil.rmtree(package / name)


def bundle(package: pathlib.Path) -> None:
    """Add the distribution's libraries, which byoc's find by their RPATH."""
    licenses = package / "licenses"
    licenses.mkdir()
    shutil.copy(TOP / "LICENSE", licenses / "byoc")
    plugin = package / "lib" / "byoc" / "libbyoc_backend_dnnl.so"
    needed = run("ldd", plugin, package / "lib" / "libbyoc.so.0")
    for name, path in re.findall(r"^\s(lib\S+) => (/\S+)", needed, re.M):
        real = pathlib.Path(path).resolve()
        if re.match(SYSTEM, name) or package in real.parents:
            continue
        shutil.copy(real, package / "lib" / name)
        owner = run("dpkg-query", "-S", f"*/{real.name}").split(":")[0]
        shutil.copy(f"/usr/share/doc/{owner}/copyright", licenses / owner)


def resolve_links(package: pathlib.Path) -> None:
    """Keep each library only under the name that the loader looks for.

    A zip has no symbolic links.
    """
    for path in (package / "lib").glob("*.so*"):
        if path.is_symlink() and not path.name.endswith(".so.0"):
            path.unlink()
    for path in (package / "lib").glob("*.so.0"):
        if path.is_symlink():
            path.resolve().replace(path)


def pack(root: pathlib.Path, wheel: pathlib.Path, info: str) -> None:
    """Write the files below root to the wheel, and its RECORD to the folder info."""
    files = sorted(path for path in root.rglob("*") if path.is_file())
    record = []
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in files:
            name = path.relative_to(root).as_posix()
            digest = hashlib.sha256(path.read_bytes()).digest()
            text = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
            record.append(f"{name},sha256={text},{path.stat().st_size}\n")
            archive.write(path, name)
        record.append(f"{info}/RECORD,,\n")
        archive.writestr(f"{info}/RECORD", "".join(record))


def build_wheel(
    wheel_directory: str, config_settings: object = None, metadata_directory: object = None
) -> str:
    """Write the wheel to a folder, and return its name. A hook of PEP 517."""
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    tag = f"cp311-abi3-{platform}"
    name, info = f"byoc-{version()}-{tag}.whl", f"byoc-{version()}.dist-info"
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        install(root / "byoc")
        bundle(root / "byoc")
        resolve_links(root / "byoc")
        (root / info).mkdir()
        (root / info / "METADATA").write_text(metadata())
        (root / info / "WHEEL").write_text(
            f"Wheel-Version: 1.0\nGenerator: byoc\nRoot-Is-Purelib: false\nTag: {tag}\n"
        )
        pack(root, pathlib.Path(wheel_directory) / name, info)
    return name


def build_sdist(sdist_directory: str, config_settings: object = None) -> str:
    """Pack the files of the repository's last commit."""
    stem = f"byoc-{version()}"
    path = pathlib.Path(sdist_directory) / f"{stem}.tar.gz"
    with tempfile.TemporaryDirectory() as folder:
        info = pathlib.Path(folder) / "PKG-INFO"
        info.write_text(metadata())
        os.chdir(TOP)
        run("git", "archive", f"--prefix={stem}/", f"--add-file={info}", "-o", path, "HEAD")
    return path.name
