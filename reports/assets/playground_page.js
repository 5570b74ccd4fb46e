/* reshape-conformance: a part of the pages of this site */
/* The form of the playground, and the answers below it. */
(function () {
  const data = JSON.parse(document.getElementById('data').textContent), form = document.getElementById('call');
  const output = form.querySelector('output'), answers = document.getElementById('answers'), ran = {};
  const FIELDS = ['src', 'shape', 'special_zero'], DEFAULT = FIELDS.map((name) => form.elements[name].value);
  const LOOKS = {legal: ['✓', 'pass'], illegal: ['✗', 'fail'], unspecified: ['◆', 'observed']};
  let timer = 0;

  /** Make an element, or one of SVG, with attributes, and nodes and texts inside. */
  function make(name, attributes, ...inside) {
    const svg = name.split('svg:')[1];
    const element = svg ? document.createElementNS('http://www.w3.org/2000/svg', svg) : document.createElement(name);
    Object.entries(attributes).forEach(([key, value]) => element.setAttribute(key, value));
    element.append(...inside);
    return element;
  }
  const link = (href, text) => make('a', {href}, text);
  const separate = (nodes, between) => nodes.flatMap((node, k) => (k ? [between, node] : [node]));
  const countNoun = (number, noun) => `${number} ${noun}${number === 1 ? '' : 's'}`;

  /** Group values by a text, in the order in which the texts come. */
  function group(values, textOf) {
    const groups = new Map();
    values.forEach((value) => {
      const text = textOf(value);
      groups.set(text, [...(groups.get(text) ?? []), value]);
    });
    return [...groups];
  }
  function nameDocuments(members) {
    const all = Object.keys(data.documents).length;
    return members.length === all && all > 1 ? `all ${all} documents` : members.map(([name]) => name).join(', ');
  }

  /* ── the form and the address ── */

  /** Read a field; null if its text cannot be read, which is said beside it. */
  function read(name, parse) {
    const field = form.elements[name], wrong = document.getElementById(`${name}-wrong`);
    try {
      const value = parse(field.value);
      field.removeAttribute('aria-invalid');
      wrong.textContent = '';
      return value;
    } catch (error) {
      field.setAttribute('aria-invalid', 'true');
      if (wrong.textContent !== error.message) wrong.textContent = error.message;
      return null;
    }
  }
  function readSrc(text) {
    const src = playground.readLengths(text), negative = src.find((length) => length < 0n);
    if (negative === undefined) return src;
    throw new Error(`No tensor has a length below 0, such as ${negative}; only shape takes -1.`);
  }
  function readZero(text) {
    if (text !== 'true' && text !== 'false') throw new Error('Choose true or false.');
    return text === 'true';
  }
  function readFragment() {
    const given = new URLSearchParams(location.hash.slice(1)), isCall = given.has('src') || given.has('shape');
    FIELDS.forEach((name, k) => { form.elements[name].value = isCall ? given.get(name) ?? '' : DEFAULT[k]; });
    show();
  }
  function show() {
    const src = read('src', readSrc), shape = read('shape', playground.readLengths), zero = read('special_zero', readZero);
    clearTimeout(timer);
    answers.hidden = [src, shape, zero].includes(null);
    if (answers.hidden) {
      output.textContent = 'No answer: see the message beside the field.';
      return;
    }
    const call = {src, shape, zero}, address = `#src=${src.join(',')}&shape=${shape.join(',')}&special_zero=${zero}`;
    timer = setTimeout(() => history.replaceState(null, '', address), 300);  // slow, so not with each keystroke
    const meanings = Object.entries(data.documents).map(([name, each]) => [name, playground.decide(name, each, call)]);
    const told = group(meanings, ([, {kind, dst}]) => `${kind} ${dst}`).map(([, members]) => {
      const {kind, dst} = members[0][1];
      return `${kind} in ${nameDocuments(members)}${dst ? `, ${sayDst(members[0][1])}` : ''}`;
    });
    output.textContent = `${playground.formatCall(call)}: ${told.join('; ')}`;
    answers.replaceChildren(...describeMeanings(call, meanings), ...(data.calls.length ? describeRuns(call, meanings) : []));
  }

  /* ── what the documents say ── */

  function describeMeanings(call, meanings) {
    const same = ({kind, dst, reason, entries}) => [kind, dst, reason, ...entries.map((each) => each.source)].join(' ');
    return group(meanings, ([, meaning]) => same(meaning)).map(([, members]) => {
      const {kind, rules, reason, entries} = members[0][1], [mark, colour] = LOOKS[kind] ?? ['○', 'open'];
      const given = entries.map((each) => each.rule), isLegal = kind === 'legal';
      const titles = members.map(([name]) => (
        make('span', {}, `${data.documents[name].title} (`, link(`spec/${name}.html`, name), ')')));
      return make('section', {class: `answer ${colour}`},
        make('h2', {}, make('span', {class: `v ${colour}`}, `${mark} ${kind}`), `: ${sayDst(members[0][1])}`),
        make('p', {class: 'sub'}, ...separate(titles, ' · ')),
        reason ? make('p', {}, `Reason: ${reason}.`) : make('figure', {}, draw(call, members[0][1])),
        ...(isLegal ? describeRules(members, (name) => [...given, ...data.documents[name].volume]) : []),
        ...(isLegal && rules.length ? [make('p', {}, 'A backend may reject it for want of capacity:')] : []),
        ...describeRules(members, (name, meaning) => meaning.rules),
        ...(kind === 'unspecified' && !rules.length ? [make('p', {}, 'More than one dst keeps every rule.')] : []));
    });
  }
  function sayDst({kind, dst}) {
    if (kind === 'legal') return `dst ${playground.formatDims(dst)}`;
    if (kind === 'unspecified') return `if answered, dst ${playground.formatDims(dst)}`;
    return kind === 'illegal' ? 'a backend must reject it' : 'the operation has no such call';
  }
  /** Each rule with its lines in the documents that have it; `rulesOf` gives those of a document. */
  function describeRules(members, rulesOf) {
    const found = members.map(([name, meaning]) => [name, rulesOf(name, meaning)]);
    return [...new Set(found.flatMap(([, rules]) => rules))].map((rule) => make('div', {class: 'clause'},
      make('p', {}, make('b', {}, rule), ` ${reshape.sentences[rule]}`),
      make('ul', {}, ...found.filter(([, rules]) => rules.includes(rule)).map(([name]) => describeClause(rule, name)))));
  }
  function describeClause(rule, name) {
    const {treatment, lines, why, finding} = data.documents[name].rules[rule], page = `spec/${name}.html`;
    const said = [treatment, ...lines.map(([line, words]) => `line ${line} “${words}”`)].join(', ');
    return make('li', {}, link(`${page}#rule-${rule}`, name), `: ${said}${why ? `. ${why}` : ''}`,
      ...(finding && lines.length ? [' (', link(`${page}#finding-${finding}`, finding), ')'] : []));
  }
  function draw(call, meaning) {
    const {label, lines} = playground.drawReading(call, meaning);
    const width = Math.max(156, ...lines.flatMap(({boxes}) => boxes.map((box) => box.x + box.width))) + 4;
    const text = (x, y, style, words) => make('svg:text', {x, y, class: style}, words);
    const drawBox = (box, top, middle) => [
      make('svg:rect', {class: box.kind, x: box.x, y: top, width: box.width}), text(middle, top + 15, '', box.text),
      ...(box.word ? [text(middle, top + 33, 'what', box.word)] : []),
      ...(box.above === null ? [] : [make('svg:path', {d: `M${box.above} ${top - 34}L${middle} ${top}`})]),
    ];
    const size = {viewBox: `0 0 ${width} 150`, width, height: 150};
    return make('svg:svg', {class: 'pic', role: 'img', 'aria-label': label, ...size}, ...lines.flatMap(({name, top, boxes}) => [
      text(0, top + 15, 'name', name), ...(boxes.length ? [] : [text(66, top + 15, 'name', 'rank 0')]),
      ...boxes.flatMap((box) => drawBox(box, top, box.x + box.width / 2)),
    ]));
  }

  /* ── what backends did ── */

  /** The calls that were run, by document, each with its sort there and what backends did. */
  function ranIn(name) {
    const number = Object.keys(data.documents).indexOf(name), row = (text) => (text ? text.split(',').map(BigInt) : []);
    return ran[name] ??= data.calls.flatMap(([id, src, shape, zero, ...done]) => {
      const call = {src: row(src), shape: row(shape), zero: zero === 1}, [backends, failing] = data.done[done[number]];
      if (!backends) return [];
      return [{id, call, sort: playground.sortOf(call, playground.decide(name, data.documents[name], call)), backends, failing}];
    });
  }
  function describeRuns(call, meanings) {
    const found = meanings.filter(([, {kind}]) => kind !== 'not expressible').map(([name, meaning]) => (
      [name, make('section', {class: 'answer'}, ...describeFound(playground.findRun(call, meaning, ranIn(name))))]));
    return [make('h2', {}, 'What backends did'), ...group(found, ([, section]) => section.textContent).map(([, members]) => {
      members[0][1].prepend(make('h3', {}, `In ${nameDocuments(members)}`));
      return members[0][1];
    })];
  }
  function describeFound({exact, alike, failing}) {
    const caseLink = ({id}) => link(`${answers.dataset.compared}#case-${id}`, id);
    const count = (each) => `${each.failing.length} of ${countNoun(each.backends, 'backend')} fail it:`;
    const first = exact ? ['This call was run, as the case ', caseLink(exact), '. '] :
      ['This call is not among those that were run. '];
    if (exact?.failing.length) return [make('p', {}, ...first, count(exact)), listFailing(exact)];
    if (exact) first.push(`None of ${countNoun(exact.backends, 'backend')} fails it. `);
    if (!alike.length) return [make('p', {}, ...first, 'No call of this sort was run.')];
    const [nearest] = failing, were = alike.length === 1 ? 'was' : 'were';
    const sort = `of the ${countNoun(alike.length, 'call')} of this sort that ${were} run`;
    if (!nearest) return [make('p', {}, ...first, `Backends fail none ${sort}.`)];
    first.push(`Backends fail ${failing.length} ${sort}. The nearest of these is `);
    const named = [make('code', {}, playground.formatCall(nearest.call)), ', the case ', caseLink(nearest), '. '];
    return [make('p', {}, ...first, ...named, count(nearest)), listFailing(nearest)];
  }
  function listFailing({id, failing}) {
    function describe([number, , failed, tests]) {
      const [name, page] = data.backends[number];
      return make('span', {}, link(`${page}#case-${id}`, name), failed < tests ? ` in ${failed} of ${tests} tests` : '');
    }
    return make('dl', {}, ...group(failing, ([, severity]) => severity).flatMap(([severity, members]) => [
      make('dt', {}, make('span', {class: `tag ${severity < 2 ? 'fail' : 'warn'}`}, data.severities[severity])),
      make('dd', {}, ...separate(members.map(describe), ', ')),
    ]));
  }

  form.addEventListener('submit', (event) => event.preventDefault());
  form.addEventListener('input', show);
  window.addEventListener('hashchange', readFragment);
  form.hidden = false;
  readFragment();
})();
