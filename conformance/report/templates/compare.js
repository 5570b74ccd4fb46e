/* The filters of the page that compares backends, and the order of its table. */
(function () {
  var groups = groupBlocks('[data-s]', function (element) {
    return {element: element, rule: element.getAttribute('data-r'), text: null,
      show: element.getAttribute('data-s').split(' ')};
  });
  var lines = [].concat.apply([], groups.map(function (group) { return group.blocks; }));
  var chosen = chooseBackends(groups);

  function textOf(line) {
    if (line.text === null) line.text = line.element.firstElementChild.textContent.toLowerCase();
    return line.text;
  }
  whenIdle(lines, textOf);

  wireFilters('#rules', function (want) {
    var text = (want.text || '').toLowerCase(), count = 0, total = 0, now = chosen(want);
    now.forEach(function (group) {
      group.blocks.forEach(function (line) {
        line.shown = (!want.show || line.show.indexOf(want.show) >= 0) && (!want.rule || line.rule === want.rule) &&
          (!text || textOf(line).indexOf(text) >= 0);
        if (line.shown) count += 1;
        total += 1;
      });
    });
    showGroups(now, true, function () {});
    return count + ' of ' + total + ' lines shown';
  });

  /* ── the table of backends ── */

  var table = document.querySelector('.big table'), chips = document.querySelectorAll('[data-chip]');
  if (!table) return;

  chips.forEach(function (chip) {
    chip.addEventListener('click', function () {
      var kind = chip.getAttribute('data-chip');
      chips.forEach(function (each) { each.setAttribute('aria-pressed', String(each === chip)); });
      table.querySelectorAll('tr[data-kind]').forEach(function (row) {
        row.hidden = kind !== '' && row.getAttribute('data-kind').split(' ').indexOf(kind) < 0;
      });
    });
  });
  if (chips.length) chips[0].parentNode.hidden = false;

  function sortBy(column, heads) {
    var rising = heads[column].getAttribute('aria-sort') !== 'ascending';
    heads.forEach(function (head) { head.removeAttribute('aria-sort'); });
    heads[column].setAttribute('aria-sort', rising ? 'ascending' : 'descending');
    Array.from(table.tBodies).map(function (body) {
      return {body: body, number: Number(body.rows[0].cells[column].getAttribute('data-n'))};
    }).sort(function (one, other) {
      return rising ? one.number - other.number : other.number - one.number;
    }).forEach(function (each) { table.appendChild(each.body); });
  }
  var heads = Array.from(table.querySelectorAll('th[data-sort]'));
  heads.forEach(function (head, column) {
    var button = document.createElement('button');
    button.type = 'button';
    while (head.firstChild) button.appendChild(head.firstChild);
    head.appendChild(button);
    button.addEventListener('click', function () { sortBy(column, heads); });
  });
})();
