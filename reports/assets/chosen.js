/* reshape-conformance: a part of the pages of this site */
/**
 * Two to five backends side by side: a table with a line for each rule or case, instead of the list of all backends.
 *
 * @param {Object[]} every the groups of lines of the page
 * @return {function(Object): Object[]} puts a choice into effect, and returns the groups of lines to filter
 */
function chooseBackends(every) {
  var picks = Array.from(document.querySelectorAll('.choices select')), cells = document.getElementById('cells');
  var intro = document.querySelectorAll('.all-backends');
  var lists = every.filter(function (group) { return group.element.hasAttribute('data-lines'); });
  var others = every.filter(function (group) { return lists.indexOf(group) < 0; }), shown = '', now = every;
  var boxes = Array.from(document.querySelectorAll('.chosen')), known = cells ? JSON.parse(cells.textContent) : [];
  var mute = /not (run|claimed)$/, TOGETHER = 40;  // lines that the browser lays out together, when they come near
  var BAD = [' error', ' fail', ' ends the process', ' wrong answer', ' rejects a legal call', ' accepts an illegal call'];
  var ORDER = BAD.concat([' pass', ' observed', ' waived', ' not claimed', ' not run']);
  if (picks.length > 1) document.querySelector('.choices').hidden = false;

  /* The roles stay if the style shows a part of a table as a grid. */
  function make(name, role) {
    var element = document.createElement(name);
    element.setAttribute('role', role);
    return element;
  }
  function chosenOf(want) {
    var places = picks.filter(function (pick) { return want[pick.name]; }).map(function (pick) { return pick.selectedIndex; });
    return Array.from(new Set(places)).map(function (place) {
      var option = picks[0].options[place];
      return {name: option.value, page: option.getAttribute('data-page'), place: place - 1};
    });
  }

  /* What each chosen backend did: its group, the verdict, and how many of its rows have it if not all. */
  function cellsOf(line, chosen) {
    var both = known[line.element.getAttribute('data-c')], kinds = both[0].split(';'), of = both[1].split(',');
    var groups = line.element.querySelectorAll('li');
    return chosen.map(function (backend) {
      var kind = kinds[of[backend.place]].split(' '), group = groups[kind[0]];
      return {group: group, part: kind[1] || '', word: group.querySelector('b[class]').textContent.slice(1)};
    });
  }
  function count(cells, key) { return new Set(cells.map(function (cell) { return cell[key]; })).size; }

  /* 0: verdicts differ; 1: answers differ; 2: all did the same. */
  function rankOf(cells) {
    var say = cells.filter(function (cell) { return !mute.test(cell.word); });
    if (!say.every(bad) && count(say, 'word') > 1) return 0;
    return count(say, 'group') > 1 ? 1 : 2;
  }

  function fill(cell, backend, from, line) {
    var inner = document.createElement('a');
    inner.href = backend.page + '#' + (bad(from) ? line.id : 'rule-' + line.rule);
    from.group.childNodes.forEach(function (node) {
      if (node.tagName !== 'SMALL') inner.appendChild(node.cloneNode(true));
    });
    if (from.part) inner.appendChild(document.createTextNode(' ' + from.part));
    cell.className = from.group.querySelector('b[class]').className;
    cell.setAttribute('data-d', backend.name);
    cell.appendChild(inner);
  }
  function bad(cell) { return BAD.indexOf(cell.word) >= 0; }
  function lineOf(line, chosen) {
    var cells = cellsOf(line, chosen), rank = rankOf(cells), row = make('tr', 'row');
    var title = line.element.querySelector('dt'), head = row.appendChild(make('th', 'rowheader'));
    head.scope = 'row';
    head.innerHTML = title.innerHTML;
    cells.forEach(function (from, k) { fill(row.appendChild(make('td', 'cell')), chosen[k], from, {id: title.id, rule: line.rule}); });
    return {element: row, rule: line.rule, text: line.text, rank: rank, marks: cells.map(function (cell) { return cell.group.querySelector('b[class]'); }),
      show: (rank ? [] : ['disagreements']).concat(cells.filter(bad).length === 1 ? ['one-fails'] : [])};
  }
  /* How many lines of each verdict a backend has, in the order in which they decide. */
  function sumUp(lines, chosen, head) {
    var row = make('tr', 'row');
    row.appendChild(make('th', 'rowheader')).textContent = 'All ' + lines.length.toLocaleString('en') + ' ' + head.toLowerCase() + 's';
    chosen.forEach(function (_, k) {
      var cell = row.appendChild(make('td', 'cell')), counts = new Map();
      lines.forEach(function (line) { counts.set(line.marks[k].textContent, (counts.get(line.marks[k].textContent) || 0) + 1); });
      ORDER.forEach(function (word) {
        var line = lines.find(function (each) { return each.marks[k].textContent.endsWith(word); });
        if (line) cell.append(line.marks[k].cloneNode(true), ' ' + counts.get(line.marks[k].textContent).toLocaleString('en') + ' ');
      });
    });
    return row;
  }
  function build(box, chosen) {
    var head = make('tr', 'row'), table = box.querySelector('table'), groups = [], what = box.getAttribute('data-head');
    [{name: what}].concat(chosen).forEach(function (backend) {
      var cell = head.appendChild(make('th', 'columnheader'));
      cell.scope = 'col';
      cell.appendChild(document.createElement('bdi')).textContent = backend.name;
    });
    var own = lists.filter(function (list) { return list.element.parentNode === box.parentNode; });
    var lines = blocksOf(own).map(function (line) { return lineOf(line, chosen); }).sort(function (one, other) { return one.rank - other.rank; });
    table.tHead.replaceChildren(head, sumUp(lines, chosen, what));
    Array.from(table.tBodies).forEach(function (body) { body.remove(); });
    for (var at = 0; at < lines.length; at += TOGETHER) {
      var some = lines.slice(at, at + TOGETHER), body = table.appendChild(make('tbody', 'rowgroup'));
      some.forEach(function (line) { body.appendChild(line.element); });
      groups.push({element: body, blocks: some});
    }
    table.style.setProperty('--columns', chosen.length);
    return groups;
  }

  return function (want) {
    var chosen = chosenOf(want), key = '';
    if (chosen.length < 2) chosen = [];
    picks.forEach(function (pick, k) { pick.parentNode.hidden = k > 1 && !pick.value && !picks[k - 1].value; });
    key = chosen.map(function (backend) { return backend.place; }).join();
    if (key !== shown) {
      now = chosen.length ? others.concat.apply(others, boxes.map(function (box) { return build(box, chosen); })) : every;
      boxes.forEach(function (box) { box.hidden = !chosen.length; });
      lists.forEach(function (group) { hide(group.element, chosen.length > 0); });
      intro.forEach(function (text) { hide(text, chosen.length > 0); });
      shown = key;
    }
    return now;
  };
}
