//! The protocol between this program and the suite; nothing here needs to change.
use crate::json::{parse, quoted, quoted_list, Json};
use std::collections::HashMap;
use std::error::Error;
use std::fs::File;
use std::io::{self, BufRead, Read, Write};
use std::os::unix::io::AsFd;

/// A backend, and what it claims.
pub struct Backend {
    pub name: &'static str,
    pub version: &'static str,
    pub operations: &'static [&'static str],
    pub not_claimed: &'static [&'static str],
    pub answers_special_zero: bool,
    pub reshape: fn(&str, &Tensor, &[i64], bool) -> Result<Answer, String>,
}

/// The dims of dst, and its elements without gaps.
pub type Answer = (Vec<i64>, Vec<u8>);

/// What was received cannot be read.
pub type Fault = Box<dyn Error>;

pub struct Tensor {
    pub kind: String, // f32, bf16, f16, …
    pub dims: Vec<i64>,
    pub strides: Vec<i64>, // in bytes; they may be 0 or negative
    pub memory: Vec<u8>,
    pub offset: usize, // of the element at index 0 in every axis
}

/// The number of bytes of an element.
pub fn width_of(kind: &str) -> usize {
    let bits = kind.trim_start_matches(|c: char| !c.is_ascii_digit());
    bits.parse().map_or(1, |bits: usize| bits / 8) // bool has no digits
}

/// The number of elements; past 64 bits the largest number, which no tensor in memory has.
pub fn volume(dims: &[i64]) -> u64 {
    if dims.contains(&0) {
        return 0;
    }
    dims.iter().fold(1, |product: u64, &length| {
        product.saturating_mul(length as u64)
    })
}

const PROTOCOL: &str = "reshape-conformance/1";

/// A reply in JSON, and the bytes that follow it.
type Reply = (String, Vec<u8>);

fn error(why: &str) -> String {
    format!("\"error\":{{\"message\":{}}}", quoted(why))
}

/// Return a facet that the node needs and a call of `reshape` cannot express.
fn missing_facet(node: &Json) -> Result<Option<&str>, Fault> {
    let (shape, zero) = (node.get("shape"), node.get("special_zero"));
    let is_plain = *shape != Json::Null
        && shape.get("dims").list()?.len() == 1
        && shape.get("type").text()?.starts_with(['s', 'u'])
        && *zero.get("type") == Json::Text("bool".into())
        && *zero.get("values") != Json::Null
        && *node.get("attributes") == Json::Object(vec![])
        && node.get("inputs").number()? == 1
        && node.get("outputs").number()? == 1;
    Ok(match node.get("result") {
        _ if !is_plain => Some("form"),
        Json::Null => None,
        _ => Some("declared"),
    })
}

/// Does every element lie inside the tensor's memory?
fn is_inside(tensor: &Tensor) -> bool {
    let size = tensor.memory.len() as i64;
    let (mut low, mut high) = (
        tensor.offset as i64,
        (tensor.offset + width_of(&tensor.kind)) as i64,
    );
    for (&length, &stride) in tensor
        .dims
        .iter()
        .zip(&tensor.strides)
        .filter(|(&length, _)| length != 1)
    {
        match length.wrapping_sub(1).checked_mul(stride) {
            Some(reach) if length > 0 && reach.unsigned_abs() <= size as u64 => {
                low += reach.min(0);
                high += reach.max(0);
            }
            _ => return false,
        }
    }
    low >= 0 && high <= size
}

fn read_tensor(header: &Json, input: &mut impl Read) -> Result<Tensor, Fault> {
    let size = usize::try_from(header.get("bytes").number()?)?;
    let mut memory = Vec::new();
    memory.try_reserve_exact(size)?;
    memory.resize(size, 0);
    input.read_exact(&mut memory)?;
    let tensor = Tensor {
        kind: header.get("type").text()?.to_string(),
        dims: header.get("dims").numbers()?,
        strides: header.get("strides").numbers()?,
        offset: usize::try_from(header.get("offset").number()?)?,
        memory,
    };
    let is_sound = tensor.dims.len() == tensor.strides.len() && tensor.offset <= size;
    if !is_sound || volume(&tensor.dims) != 0 && !is_inside(&tensor) {
        return Err("a tensor reaches past its memory".into());
    }
    Ok(tensor)
}

/// Return the entries of a shape tensor; an entry past 63 bits becomes the smallest number.
fn entries_of(shape: &Tensor) -> Vec<i64> {
    let width = width_of(&shape.kind);
    let entry = |i: i64| {
        let at = (shape.offset as i64 + i * shape.strides[0]) as usize;
        let negative = shape.kind.starts_with('s') && shape.memory[at + width - 1] >= 0x80;
        let mut bytes = [if negative { 0xff } else { 0 }; 8];
        bytes[..width].copy_from_slice(&shape.memory[at..at + width]);
        let entry = i64::from_le_bytes(bytes);
        if shape.kind.starts_with('u') && entry < 0 {
            i64::MIN
        } else {
            entry
        }
    };
    (0..shape.dims[0]).map(entry).collect()
}

/// Add to a reply what the library wrote into its inputs, also if it rejected the call.
fn with_written(
    reply: String,
    mut payload: Vec<u8>,
    inputs: &[Tensor],
    before: &[Vec<u8>],
) -> Reply {
    let mut wrote = Vec::new();
    for (tensor, (input, before)) in inputs.iter().zip(before).enumerate() {
        if input.memory != *before {
            wrote.push(format!(
                "{{\"tensor\":{tensor},\"bytes\":{}}}",
                before.len()
            ));
            payload.extend_from_slice(&input.memory);
        }
    }
    (format!("{reply},\"wrote\":[{}]", wrote.join(",")), payload)
}

/// Call the library for each node in turn.
fn run(backend: &Backend, graph: &Json, inputs: &[Tensor]) -> Result<Reply, Fault> {
    let (src, mut shapes) = (inputs.first().ok_or("a run lacks src")?, inputs[1..].iter());
    let before: Vec<_> = inputs.iter().map(|input| input.memory.clone()).collect();
    let mut dst: Option<Tensor> = None;
    for node in graph.get("nodes").list()? {
        let shape = match node.get("shape").get("values") {
            Json::Null => entries_of(shapes.next().ok_or("a run lacks a shape tensor")?),
            values => values.numbers()?,
        };
        let special_zero = node.get("special_zero").get("values").list()? == [Json::Bool(true)];
        let from = if *node.get("takes_src") == Json::Bool(true) {
            src
        } else {
            dst.as_ref().unwrap_or(src)
        };
        match (backend.reshape)(node.get("operation").text()?, from, &shape, special_zero) {
            Ok((dims, elements)) => dst = Some(dense(&src.kind, dims, elements)),
            Err(why) => {
                let why = quoted(&why);
                let rejected = format!("\"rejected\":{{\"stage\":\"run\",\"message\":{why}}}");
                return Ok(with_written(rejected, vec![], inputs, &before));
            }
        }
    }
    let dst = dst.ok_or("a graph has no nodes")?;
    let dims: Vec<_> = dst
        .dims
        .iter()
        .map(|length| format!("\"{length}\""))
        .collect();
    let (kind, dims, bytes) = (quoted(&dst.kind), dims.join(","), dst.memory.len());
    let result = format!("\"type\":{kind},\"dims\":[{dims}],\"bytes\":{bytes}");
    let result = format!("\"result\":{{{result}}}");
    Ok(with_written(result, dst.memory, inputs, &before))
}

/// A tensor without gaps.
fn dense(kind: &str, dims: Vec<i64>, memory: Vec<u8>) -> Tensor {
    let mut step = width_of(kind) as i64;
    let mut strides = vec![0; dims.len()];
    for (stride, length) in strides.iter_mut().zip(&dims).rev() {
        *stride = step;
        step = step.wrapping_mul(*length);
    }
    Tensor {
        kind: kind.to_string(),
        dims,
        strides,
        memory,
        offset: 0,
    }
}

fn describe(backend: &Backend) -> String {
    let (name, version) = (quoted(backend.name), quoted(backend.version));
    let operations = quoted_list(backend.operations);
    let not_claimed = quoted_list(backend.not_claimed);
    let answers = backend.answers_special_zero;
    let identity = format!("\"name\":{name},\"version\":{version},\"detail\":{{}}");
    let claims = format!("\"operations\":{operations},\"not_claimed\":{not_claimed}");
    format!("\"result\":{{{identity},{claims},\"answers_special_zero\":{answers}}}")
}

fn perform(
    backend: &Backend,
    request: &Json,
    programs: &mut HashMap<i64, Json>,
    input: &mut impl Read,
) -> Result<Reply, Fault> {
    let number = request.get("program");
    let reply = match request.get("do").text()? {
        "hello" if *request.get("protocol") != Json::Text(PROTOCOL.into()) => {
            error(&format!("this program speaks {PROTOCOL}"))
        }
        "hello" => format!(
            "\"result\":{{\"protocol\":\"{PROTOCOL}\",\"shared_memory\":false,\"takes_src\":true}}"
        ),
        "describe" => describe(backend),
        "compile" => {
            let graph = request.get("graph");
            for node in graph.get("nodes").list()? {
                if let Some(facet) = missing_facet(node)? {
                    return Ok((
                        format!("\"unsupported\":{{\"feature\":\"{facet}\"}}"),
                        vec![],
                    ));
                }
            }
            programs.insert(number.number()?, graph.clone());
            "\"result\":{}".to_string()
        }
        "run" => {
            let headers = request.get("tensors").list()?.iter();
            let inputs = headers
                .map(|header| read_tensor(header, input))
                .collect::<Result<Vec<_>, _>>()?;
            match programs.get(&number.number()?) {
                Some(graph) => return run(backend, graph, &inputs),
                None => error("there is no such program"),
            }
        }
        "close" => {
            programs.remove(&number.number()?);
            "\"result\":{}".to_string()
        }
        "stop" => "\"result\":{}".to_string(),
        act => error(&format!("unknown request {act}")),
    };
    Ok((reply, vec![]))
}

extern "C" {
    fn dup2(old: i32, new: i32) -> i32;
}

/// Answer requests until the last one.
pub fn serve(backend: &Backend) -> Result<(), Fault> {
    let mut out = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    unsafe { dup2(2, 1) }; // what the library prints goes to standard error
    let mut input = io::stdin().lock();
    let mut programs = HashMap::new();
    loop {
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let request = parse(&line)?;
        let (reply, payload) = perform(backend, &request, &mut programs, &mut input)?;
        out.write_all(format!("{{\"id\":{},{reply}}}\n", request.get("id").number()?).as_bytes())?;
        out.write_all(&payload)?;
        if *request.get("do") == Json::Text("stop".into()) {
            return Ok(());
        }
    }
}
