/* The filters of the page that compares backends, and the order of its table. */
(function () {
  var lines = Array.from(document.querySelectorAll('[data-s]'), function (element) {
    return {element: element, rule: element.getAttribute('data-r'), text: null,
      show: element.getAttribute('data-s').split(' ')};
  });
  var chosen = chooseBackends(lines.filter(function (line) { return line.element.hasAttribute('data-c'); }));

  wireFilters('#rules', function (want) {
    var text = (want.text || '').toLowerCase(), count = 0, rows = chosen(want, lines);
    rows.forEach(function (row) {
      if (text && row.text === null) row.text = row.element.querySelector('dt, th').textContent.toLowerCase();
      var shown = (!want.show || row.show.indexOf(want.show) >= 0) && (!want.rule || row.rule === want.rule) &&
        (!text || row.text.indexOf(text) >= 0);
      if (row.element.hidden === shown) row.element.hidden = !shown;
      if (shown) count += 1;
    });
    return count + ' of ' + rows.length + ' lines shown';
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
