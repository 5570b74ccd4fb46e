/**
 * Two to five backends side by side: a line for each case instead of the list of all backends.
 *
 * @param {Object[]} every the groups of lines of the page
 * @return {function(Object): Object[]} puts a choice into effect, and returns the groups of lines to filter
 */
function chooseBackends(every) {
  var picks = Array.from(document.querySelectorAll('.choices select')), box = document.querySelector('.chosen');
  var lists = every.filter(function (group) { return group.element.hasAttribute('data-cases'); });
  var others = every.filter(function (group) { return lists.indexOf(group) < 0; }), shown = '', now = every;
  var cells = document.getElementById('cells'), known = cells ? JSON.parse(cells.textContent) : [];  // groups of cases
  var mute = /not (run|claimed)$/, TOGETHER = 40;  // lines that the browser lays out together, when they come near
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
      return {group: group, part: kind[1] || '', word: group.querySelector('.v').textContent};
    });
  }
  function count(cells, key) { return new Set(cells.map(function (cell) { return cell[key]; })).size; }

  /* 0: verdicts differ; 1: answers differ; 2: all did the same. */
  function rankOf(cells) {
    var say = cells.filter(function (cell) { return !mute.test(cell.word); });
    return count(say, 'word') > 1 ? 0 : count(say, 'group') > 1 ? 1 : 2;
  }

  function fill(cell, backend, from, line) {
    var inner = document.createElement(backend.page ? 'a' : 'span');
    if (backend.page) inner.href = backend.page + '#' + (bad(from) ? line.id : 'rule-' + line.rule);
    from.group.childNodes.forEach(function (node) {
      if (node.className !== 'sub') inner.appendChild(node.cloneNode(true));
    });
    if (from.part) inner.appendChild(document.createTextNode(' ' + from.part));
    cell.className = from.group.querySelector('.v').classList[1];
    cell.setAttribute('data-d', backend.name);
    cell.appendChild(inner);
  }
  function bad(cell) { return /(fail|error)$/.test(cell.word); }
  function lineOf(line, chosen) {
    var cells = cellsOf(line, chosen), rank = rankOf(cells), row = make('tr', 'row');
    var title = line.element.querySelector('dt'), head = row.appendChild(make('th', 'rowheader'));
    head.scope = 'row';
    head.innerHTML = title.innerHTML;
    cells.forEach(function (from, k) { fill(row.appendChild(make('td', 'cell')), chosen[k], from, {id: title.id, rule: line.rule}); });
    return {element: row, rule: line.rule, text: line.text, rank: rank,
      show: (rank ? [] : ['disagreements']).concat(cells.filter(bad).length === 1 ? ['one-fails'] : [])};
  }
  function build(chosen) {
    var head = make('tr', 'row'), table = box.querySelector('table'), groups = [];
    [{name: 'Case'}].concat(chosen).forEach(function (backend) {
      var cell = head.appendChild(make('th', 'columnheader'));
      cell.scope = 'col';
      cell.appendChild(document.createElement('bdi')).textContent = backend.name;
    });
    table.tHead.replaceChildren(head);
    var lines = blocksOf(lists).map(function (line) { return lineOf(line, chosen); }).sort(function (one, other) { return one.rank - other.rank; });
    Array.from(table.tBodies).forEach(function (body) { body.remove(); });
    for (var at = 0; at < lines.length; at += TOGETHER) {
      var some = lines.slice(at, at + TOGETHER), body = table.appendChild(make('tbody', 'rowgroup'));
      some.forEach(function (line) { body.appendChild(line.element); });
      groups.push({element: body, blocks: some});
    }
    table.style.setProperty('--columns', chosen.length);
    return others.concat(groups);
  }

  /* The tables of rules, with a column for each backend, in as many tables as paper wants. */
  function showColumns(chosen) {
    var begin = -1;
    document.querySelectorAll('.abreast').forEach(function (part) {
      var heads = part.querySelectorAll('thead th'), any = !chosen.length;
      heads.forEach(function (head, column) {
        var shown = !column || !chosen.length || chosen.some(function (each) { return each.place === begin + column; });
        any = any || (column > 0 && shown);
        part.querySelectorAll('tr').forEach(function (row) { row.cells[column].hidden = !shown; });
      });
      part.hidden = !any;
      begin += heads.length - 1;
    });
  }

  return function (want) {
    var chosen = chosenOf(want), key = '';
    if (chosen.length < 2) chosen = [];
    key = chosen.map(function (backend) { return backend.place; }).join();
    if (key !== shown) {
      now = chosen.length && box ? build(chosen) : every;
      showColumns(chosen);
      if (box) box.hidden = !chosen.length;
      lists.forEach(function (group) { hide(group.element, chosen.length > 0); });
      shown = key;
    }
    return now;
  };
}
