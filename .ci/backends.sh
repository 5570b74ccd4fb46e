#!/usr/bin/env bash
# Tests the suite with real libraries, each group in an environment of its own under build/backends.
#
#   .ci/backends.sh test [GROUP…]      check that the known faults are still caught, and that the scripts of `explain` show them
#   .ci/backends.sh publish [GROUP…]   run the whole suite on every backend, and write reports/
#
# Without groups: onednn openvino onnx torch for `test`, all for `publish`. The versions are those of conformance/tests/golden.
set -euo pipefail
cd "$(dirname "$0")/.."
exec </dev/null

readonly HOME_OF_ALL=build/backends
readonly TESTED="onednn openvino onnx torch"
readonly EVERY="$TESTED onednn-sycl openvino-2025 onnx-1.20 jax tensorflow arrays paddle litert mnn ncnn tract tvm pytensor"

needs() { # what pip installs for a group
    case $1 in
        onednn) ;; # its library is one file of another project's wheel
        onednn-sycl) echo onednn==2026.1.0 ;;
        openvino) echo openvino==2026.4.1 ;;
        openvino-2025) echo openvino==2025.0.0 ;;
        onnx) echo onnx==1.23.2 onnxruntime==1.31.1 ;;
        onnx-1.20) echo onnx==1.16.2 onnxruntime==1.20.1 ;;
        torch) echo torch==2.13.0 ;;
        jax) echo jax==0.10.2 ;;
        tensorflow) echo tensorflow-cpu==2.21.0 ;;
        arrays) echo 'mlx[cpu]==0.32.4' dask==2026.8.0 array-api-strict==2.6.1 ndonnx==0.23.0 onnxruntime==1.31.1 ;;
        paddle) echo paddlepaddle==3.3.1 'numpy<2.4' ;;
        litert) echo ai-edge-litert==2.3.0 flatbuffers==25.12.19 ;;
        mnn) echo MNN==3.6.1 ;;
        ncnn) echo ncnn==1.0.20261020 ;;
        tract) echo tract==0.23.9 onnx==1.23.2 ;;
        tvm) echo apache-tvm==0.27.0.post1 onnx==1.23.2 ;;
        pytensor) echo pytensor==3.0.7 ;;
        *) echo "backends.sh: no group $1; there are $EVERY" >&2 && exit 2 ;;
    esac
}

backends() { # the backends of a group
    case $1 in
        onednn | onednn-sycl) echo onednn ;;
        openvino) echo openvino openvino-reference ;;
        openvino-2025) echo openvino ;;
        onnx) echo onnxruntime onnxruntime-plain onnx-reference ;;
        onnx-1.20) echo onnxruntime ;;
        torch) echo torch torch-raw torch-mkldnn torch-compile torch-inductor ;;
        jax) echo jax jax-jit ;;
        tensorflow) echo tensorflow tensorflow-function tensorflow-xla ;;
        arrays) echo mlx dask array-api-strict ndonnx numpy numpy-raw ;;
        litert) echo litert litert-xnnpack ;;
        paddle | mnn | ncnn | tract | tvm | pytensor) echo "$1" ;;
    esac
}

limit() { # seconds for a call: some calls of JAX and TVM take minutes, some of PyTorch compile C++
    case $1 in
        jax | tvm) echo 3 ;;
        torch) echo 60 ;;
        *) echo 10 ;;
    esac
}

words() { # the -k expression that selects the tests of a group
    case $1 in
        onednn*) echo "onednn or c_program" ;;
        openvino*) echo openvino ;;
        arrays) echo "mlx or dask or array-api or ndonnx or numpy-raw" ;;
        onnx*) echo "onnx and not ndonnx" ;;
        torch) echo "torch and not inductor" ;;
        *) echo "$1" ;;
    esac
}

install() {
    local home=$HOME_OF_ALL/$1 packages
    packages=$(needs "$1")
    if [ "$(cat "$home/installed" 2>/dev/null)" != "$packages" ] || ! "$home/bin/python" -c '' 2>/dev/null; then
        rm -rf "$home"
        "${PYTHON:-python3}" -m venv "$home"
        # shellcheck disable=SC2086 - several packages
        "$home/bin/python" -m pip --disable-pip-version-check install --quiet --editable . $packages
        [ "$1" != onednn ] || unpack "$home"
        echo "$packages" >"$home/installed"
    fi
}

unpack() { # oneDNN 3.6.2, one file of a wheel of 195 MB
    "$1/bin/python" -m pip --disable-pip-version-check download --quiet --no-deps --dest "$1/wheel" paddlepaddle==3.3.1
    "$1/bin/python" - "$1" <<'EOF'
import pathlib, sys, zipfile
home = pathlib.Path(sys.argv[1])
(wheel,) = home.glob("wheel/*.whl")
(home / "libdnnl.so.3").write_bytes(zipfile.ZipFile(wheel).read("paddle/libs/libdnnl.so.3"))
EOF
    rm -rf "$1/wheel"
}

within() { # run a command in the environment of a group
    local home=$HOME_OF_ALL/$1
    shift
    if [ -e "$home/libdnnl.so.3" ]; then
        ONEDNN_LIBRARY=$PWD/$home/libdnnl.so.3 "$home/bin/python" "$@"
    else
        env -u ONEDNN_LIBRARY "$home/bin/python" "$@"
    fi
}

run_tests() { # run the tests of a group
    within "$1" -m pytest -q -p no:cacheprovider -k "$(words "$1")" \
        conformance/tests/certify/test_golden.py conformance/tests/adapters/test_repro.py conformance/tests/adapters/test_adapters_*.py
}

publish() { # exit code 1 means that folders of an earlier suite are left; later groups write them again
    local code=0
    within "$1" -m conformance publish --timeout "$(limit "$1")" "${@:2}" || code=$?
    [ "$code" -le 1 ]
}

job=${1:-}
shift || true
case $job in
    test) groups=${*:-$TESTED} ;;
    publish) groups=${*:-$EVERY} ;;
    *) sed -n '2,8s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
esac
for group in $groups; do
    needs "$group" >/dev/null
    printf '\n== %s\n' "$group"
    SECONDS=0
    install "$group"
    echo "installed after $SECONDS s"
    if [ "$job" = test ]; then
        run_tests "$group" || { echo "again, because the machine may have been busy" && run_tests "$group"; }
    else
        read -ra names <<<"$(backends "$group")"
        publish "$group" "${names[@]}"
    fi
    echo "done after $SECONDS s"
done
