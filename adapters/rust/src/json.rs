//! As much of JSON as the protocol needs.
use crate::protocol::Fault;
use std::num::IntErrorKind;

#[derive(Clone, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    /// The value of a key; null if there is none.
    pub fn get(&self, key: &str) -> &Json {
        match self {
            Json::Object(items) => items
                .iter()
                .find(|(name, _)| name == key)
                .map_or(&Json::Null, |(_, value)| value),
            _ => &Json::Null,
        }
    }

    pub fn list(&self) -> Result<&[Json], Fault> {
        match self {
            Json::List(items) => Ok(items),
            _ => Err("a header lacks a list".into()),
        }
    }

    pub fn text(&self) -> Result<&str, Fault> {
        match self {
            Json::Text(text) => Ok(text),
            _ => Err("a header lacks a text".into()),
        }
    }

    /// A whole number, in digits or in text. Past 64 bits it is the smallest, which is no length and
    /// no entry either.
    pub fn number(&self) -> Result<i64, Fault> {
        let digits = match self {
            Json::Number(digits) | Json::Text(digits) => digits,
            _ => return Err("a header lacks a number".into()),
        };
        digits
            .parse()
            .or_else(|error: std::num::ParseIntError| match error.kind() {
                IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => Ok(i64::MIN),
                _ => Err(format!("a header has {digits} where a number was due").into()),
            })
    }

    pub fn numbers(&self) -> Result<Vec<i64>, Fault> {
        self.list()?.iter().map(Json::number).collect()
    }
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn take(&mut self, wanted: char) -> bool {
        self.rest = self.rest.trim_start();
        let after = self.rest.strip_prefix(wanted);
        self.rest = after.unwrap_or(self.rest).trim_start();
        after.is_some()
    }

    /// Take what precedes an offset.
    fn split(&mut self, at: usize) -> &'a str {
        let (before, after) = self.rest.split_at(at);
        self.rest = after;
        before
    }

    /// Texts that matter have no escapes: one that has some keeps them unread.
    fn text(&mut self) -> Result<String, Fault> {
        let mut escaped = false;
        let end = self.rest.find(|c| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        let text = self
            .split(end.ok_or("a text in a header has no end")?)
            .to_string();
        self.take('"');
        Ok(text)
    }

    fn value(&mut self, depth: usize) -> Result<Json, Fault> {
        if depth > 64 {
            return Err("a header is nested too deeply".into());
        }
        if self.take('"') {
            return Ok(Json::Text(self.text()?));
        }
        if self.take('[') {
            return Ok(Json::List(
                self.items(']', |reader| reader.value(depth + 1))?,
            ));
        }
        if self.take('{') {
            return Ok(Json::Object(
                self.items('}', |reader| reader.entry(depth + 1))?,
            ));
        }
        let end = self
            .rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c)));
        match self.split(end.unwrap_or(self.rest.len())) {
            "" => Err("a header is no JSON".into()),
            "null" => Ok(Json::Null),
            "true" => Ok(Json::Bool(true)),
            "false" => Ok(Json::Bool(false)),
            digits => Ok(Json::Number(digits.to_string())),
        }
    }

    fn entry(&mut self, depth: usize) -> Result<(String, Json), Fault> {
        if !self.take('"') {
            return Err("a key is missing in a header".into());
        }
        let key = self.text()?;
        if !self.take(':') {
            return Err("a colon is missing in a header".into());
        }
        Ok((key, self.value(depth)?))
    }

    fn items<T>(
        &mut self,
        close: char,
        item: impl Fn(&mut Self) -> Result<T, Fault>,
    ) -> Result<Vec<T>, Fault> {
        let mut items = Vec::new();
        while !self.take(close) {
            if !items.is_empty() && !self.take(',') {
                return Err("a comma is missing in a header".into());
            }
            items.push(item(self)?);
        }
        Ok(items)
    }
}

pub fn parse(line: &str) -> Result<Json, Fault> {
    let mut reader = Reader { rest: line };
    match (reader.value(0)?, reader.rest.trim()) {
        (header @ Json::Object(_), "") => Ok(header),
        _ => Err("a header is no JSON object".into()),
    }
}

pub fn quoted(text: &str) -> String {
    let escape = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c < ' ' => format!("\\u{:04x}", c as u32),
        c => c.to_string(),
    };
    format!("\"{}\"", text.chars().map(escape).collect::<String>())
}

pub fn quoted_list(texts: &[&str]) -> String {
    format!(
        "[{}]",
        texts
            .iter()
            .map(|text| quoted(text))
            .collect::<Vec<_>>()
            .join(",")
    )
}
