/* The table of backends: chips that choose lines, and heads that sort them. */
(function () {
  var table = document.querySelector('.big table'), chips = document.querySelectorAll('[data-chip]');

  chips.forEach(function (chip) {
    chip.addEventListener('click', function () {
      var kind = chip.getAttribute('data-chip');
      chips.forEach(function (each) { each.setAttribute('aria-pressed', String(each === chip)); });
      table.querySelectorAll('tr[data-kind]').forEach(function (row) {
        row.hidden = kind !== '' && row.getAttribute('data-kind').split(' ').indexOf(kind) < 0;
      });
    });
  });
  chips[0].parentNode.hidden = false;

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
