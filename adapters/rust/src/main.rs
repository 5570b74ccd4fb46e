//! A backend for `conformance run` in Rust. It works without any change; what to change is marked CHANGE.
//!
//! Build it with `cargo build --release`. Then run `conformance check-adapter cmd:PROGRAM` and
//! `conformance run cmd:PROGRAM`, where PROGRAM is `target/release/reshape-adapter`.
//! Pass each call to the library as it is, and return its answer as it is: a verdict must be about
//! the library.
mod json;
mod protocol;

use protocol::{volume, width_of, Answer, Backend, Tensor};
use std::process::ExitCode;

/// CHANGE: your backend, and what it claims. Name in `not_claimed` the facets that your library lacks.
const BACKEND: Backend = Backend {
    name: "template",
    version: "1",
    operations: &["StaticReshape", "DynamicReshape-1", "Reshape-1"],
    not_claimed: &["declared", "form"],
    answers_special_zero: false, // true if this file answers it, because the library cannot
    reshape,
};

// ── CHANGE: the library. Replace this, down to the end of `reshape`, with calls of yours. ──
fn find_dims(
    operation: &str,
    src: &[i64],
    shape: &[i64],
    special_zero: bool,
) -> Result<Vec<i64>, String> {
    if shape.iter().any(|&entry| entry < -1) {
        return Err("an entry of shape is below -1, or past 63 bits".into());
    }
    if shape.iter().filter(|&&entry| entry == -1).count() > 1 {
        return Err("more than one entry of shape is -1".into());
    }
    if operation == "StaticReshape" && !special_zero && shape.contains(&0) && shape.contains(&-1) {
        return Err("shape has a 0 beside a -1".into());
    }
    let mut dst = shape.to_vec();
    for (axis, length) in dst
        .iter_mut()
        .enumerate()
        .filter(|(_, length)| special_zero && **length == 0)
    {
        *length = *src
            .get(axis)
            .ok_or("a 0 in shape copies a dimension that src does not have")?;
    }
    let infer = dst.iter().position(|&length| length == -1);
    let known = volume(
        &dst.iter()
            .copied()
            .filter(|&length| length != -1)
            .collect::<Vec<_>>(),
    );
    match (infer, volume(src)) {
        (Some(axis), count) if known != 0 && count % known == 0 => {
            dst[axis] = (count / known) as i64
        }
        (None, count) if count == known => {}
        _ => return Err("src and dst do not have equally many elements".into()),
    }
    Ok(dst)
}

/// Return src's elements in row-major order.
fn copy_elements(src: &Tensor) -> Vec<u8> {
    let (width, mut from) = (width_of(&src.kind), src.offset as i64);
    let (mut out, mut index) = (Vec::new(), vec![0; src.dims.len()]);
    for _ in 0..volume(&src.dims) {
        out.extend_from_slice(&src.memory[from as usize..][..width]);
        for axis in (0..index.len()).rev() {
            index[axis] += 1;
            if index[axis] < src.dims[axis] {
                from += src.strides[axis];
                break;
            }
            from -= src.strides[axis] * (src.dims[axis] - 1);
            index[axis] = 0;
        }
    }
    out
}

/// Return dst's dims and its elements without gaps, or the message with which the library rejects
/// the call.
fn reshape(
    operation: &str,
    src: &Tensor,
    shape: &[i64],
    special_zero: bool,
) -> Result<Answer, String> {
    let dims = find_dims(operation, &src.dims, shape, special_zero)?;
    Ok((dims, copy_elements(src)))
}

fn main() -> ExitCode {
    match protocol::serve(&BACKEND) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("adapter: {why}");
            ExitCode::from(65)
        }
    }
}
