/* reshape-conformance: a part of the pages of this site */
'use strict';

/* What the playground computes, apart from its page: it reads a call, draws it, and finds calls like it that were run. */
const playground = (() => {
  const LARGEST = 2n ** 63n - 1n, MAX_ENTRIES = 1000, MAX_BOXES = 9;
  const CLOSING = {'(': ')', '[': ']', '{': '}', '<': '>'};
  const WORDS = {copied: 'copied', inferred: 'inferred', literal: 'literal', illegal: 'no length'};

  /** Read a list of lengths in the forms that `conformance meaning` reads; an Error says what is wrong. */
  function readLengths(text) {
    const plain = (part) => part.trim().replace(/^['"`]+|['"`]+$/g, '').trim();
    let body = plain(text);
    const closing = CLOSING[body[0]];
    if (closing) {
      if (!body.endsWith(closing)) throw new Error(`“${body[0]}” is not closed.`);
      body = body.slice(1, -1).trim();
    }
    if (/[,;]$/.test(body)) {
      body = body.slice(0, -1).trim();
      if (!body) throw new Error('There is a comma without a number.');
    }
    const entries = body ? body.split(body.includes(',') ? /\s*[,;]\s*|\s+/ : /\s*[,;xX*]\s*|\s+/) : [];
    if (entries.length <= MAX_ENTRIES) return entries.map(readLength);
    throw new Error(`There are ${entries.length} entries; at most ${MAX_ENTRIES} are read.`);
  }
  function readLength(entry) {
    const shown = entry.length > 40 ? `${entry.slice(0, 40)}…` : entry;
    if (!entry) throw new Error('An entry is empty.');
    if (/^[^\W\d]\w*$/.test(entry)) {
      throw new Error(`“${shown}” is no number. For lengths with names, run “conformance meaning”.`);
    }
    if (!/^[+-]?[0-9]+(_[0-9]+)*$/.test(entry)) throw new Error(`“${shown}” is not a whole number.`);
    const digits = entry.replace(/[+_-]/g, '').replace(/^0+(?=.)/, '');
    const length = digits.length > 19 ? null : BigInt(digits);
    if (length === null || length > LARGEST + (entry[0] === '-' ? 1n : 0n)) {
      throw new Error(`“${shown}” does not fit 64 bits.`);
    }
    return entry[0] === '-' ? -length : length;
  }

  const formatDims = (dims) => `[${dims.map((length) => length ?? '?').join(', ')}]`;
  function formatCall({src, shape, zero}) {
    return `src ${formatDims(src)}, shape ${formatDims(shape)}, special_zero ${zero}`;
  }

  /** Say what a call means in a document: kind, dst, the rules that decide it, and the rule behind each entry. */
  function decide(name, document, {src, shape, zero}) {
    const fits = ([, low, high]) => shape.every((entry) => entry >= BigInt(low) && entry <= BigInt(high));
    if (!document.shape_types.some(fits)) {
      const [type, low, high] = document.shape_types[0];
      const entry = shape.find((each) => each < BigInt(low) || each > BigInt(high));
      const reason = `its shape is ${type}, which cannot hold ${entry}`;
      return {kind: 'not expressible', dst: null, rules: [], entries: [], reason};
    }
    const entries = reshape.entries(name, src, shape, zero);
    return {...reshape.meaning(name, src, shape, zero), entries};
  }

  /* ── the picture, as conformance/report/picture.py draws it ── */

  function drawReading({src, shape}, {kind, dst, entries}) {
    const lengths = (dims) => dims.map((length) => ({text: String(length ?? '?'), kind: 'length', source: null}));
    const boxes = shape.map((entry, k) => {
      const {rule, source} = entries[k], text = String(entry);
      if (typeof source === 'number') return {text, kind: 'copied', source};
      return {text, kind: rule === null ? 'illegal' : source, source: null};
    });
    const last = dst ? lengths(dst) : [{text: kind, kind: 'words', source: null}];
    const told = boxes.slice(0, MAX_BOXES).flatMap((box, k) => {
      if (box.kind === 'literal') return [];
      const length = (box.kind === 'copied' ? src[box.source] : dst && dst[k]) ?? null;
      return [`entry ${k} is ${box.text}, ${WORDS[box.kind]}${length === null ? '' : `: ${length}`}`];
    });
    const label = `src ${formatDims(src)}; shape ${formatDims(shape)}${told.length ? ` (${told.join('; ')})` : ''}; ` +
      `dst ${last.map((box) => box.text).join(', ') || 'no dims'}`;
    let above = [], count = 0;
    const lines = [['src', lengths(src)], ['shape', boxes], ['dst', last]].map(([name, row], number) => {
      above = placeBoxes(leaveOutMiddle(row), above, count);
      count = row.length;
      return {name, top: 2 + 56 * number, boxes: above};
    });
    return {label, lines};
  }
  function leaveOutMiddle(boxes) {
    if (boxes.length <= MAX_BOXES) return boxes;
    const middle = {text: `… ${boxes.length - MAX_BOXES + 1} more`, kind: 'words', source: null};
    return [...boxes.slice(0, MAX_BOXES - 2), middle, {...boxes[boxes.length - 1], source: null}];
  }
  function placeBoxes(boxes, above, count) {
    let x = 66;
    return boxes.map(({text, kind, source}) => {
      const width = Math.max(54, 8 * text.length + 14), isDrawn = source !== null && source < count;
      const inMiddle = count > MAX_BOXES && source >= MAX_BOXES - 2 && source < count - 1;
      const from = isDrawn ? above[inMiddle ? MAX_BOXES - 2 : Math.min(source, MAX_BOXES - 1)] : undefined;
      const box = {text, kind, word: WORDS[kind] ?? '', x, width, above: from ? from.x + from.width / 2 : null};
      x += width + 6;
      return box;
    });
  }

  /* ── calls that were run ── */

  /** The sort of a call in a document: what it means, why, and what its entries are. */
  function sortOf(call, {kind, rules}) {
    const sorts = call.shape.map((entry) => (entry > 0n ? '+' : entry < -1n ? '<' : String(entry)));
    const flag = call.shape.includes(0n) ? call.zero : '';
    return [kind, ...rules, ...[...new Set(sorts)].sort(), flag, call.src.includes(0n), call.src.length === 0].join(' ');
  }
  /** How far two calls are apart: dims that only one has, then lengths by their size. */
  function distance(one, other) {
    const size = (length) => Math.log2(Math.abs(Number(length)) + 1);
    const apart = (a, b) => a.slice(0, b.length).reduce(
      (sum, length, k) => sum + Math.abs(size(length) - size(b[k])), 2 * Math.abs(a.length - b.length));
    return apart(one.src, other.src) + apart(one.shape, other.shape) + (one.zero === other.zero ? 0 : 1);
  }
  /**
   * Find the calls like one, of those that were run in a document: [{call, sort, failing}].
   *
   * @return {Object} exact: the same call, if it was run; alike: those of its sort; failing: those of them that a backend
   *   fails, the nearest first
   */
  function findRun(call, meaning, ran) {
    const sort = sortOf(call, meaning), alike = ran.filter((each) => each.sort === sort);
    const failing = alike.filter((each) => each.failing.length).map((each) => ({...each, far: distance(call, each.call)}));
    failing.sort((one, other) => one.far - other.far);
    return {exact: alike.find((each) => formatCall(each.call) === formatCall(call)), alike, failing};
  }

  return {readLengths, formatDims, formatCall, decide, drawReading, sortOf, findRun};
})();
if (typeof module !== 'undefined') module.exports = playground;
