/* The table of backends: the document of the numbers, what a reader needs, and heads that sort. The address has the choice. */
(function () {
  var form = document.querySelector('form.filters'), table = document.querySelector('.big table');
  var rows = Array.from(table.querySelectorAll('tr[data-has]')), fields = Array.from(form.elements).filter(function (each) { return each.name; });

  function show() {
    var at = Number(form.elements.document.value), fit = 0, conform = 0;
    var text = form.elements.text.value.toLowerCase();
    document.getElementById('judged').textContent = form.elements.document.selectedOptions[0].text;
    rows.forEach(function (row) {
      var mark = row.lastElementChild.children[at], numbers = mark.getAttribute('data-n').split(' '), has = row.getAttribute('data-has').split(' ');
      var label = mark.title.slice(mark.title.lastIndexOf(': ') + 2), result = row.cells[1].firstElementChild;
      result.className = mark.className;
      result.textContent = mark.textContent + ' ' + label;
      numbers.forEach(function (number, k) { row.cells[k + 2].textContent = number === '0' ? '·' : number; });
      row.hidden = has.indexOf('older') >= 0 && !form.elements.older.checked || row.cells[0].firstElementChild.textContent.toLowerCase().indexOf(text) < 0 ||
        fields.some(function (field) {
          if (!field.checked || field.name === 'older') return false;
          if (field.name === 'lives') return numbers[0] !== '0';
          if (field.name === 'right') return numbers[1] !== '0';
          return has.indexOf(field.name) < 0;
        });
      if (row.hidden) return;
      fit += 1;
      if (label.indexOf('conforms') === 0) conform += 1;
    });
    form.querySelector('output').textContent = conform + ' conform, of ' + fit + ' that fit';
  }
  function remember() {
    history.replaceState(null, '', '#' + new URLSearchParams(new FormData(form)).toString());
    show();
  }
  new URLSearchParams(location.hash.slice(1)).forEach(function (value, name) {
    var field = form.elements[name];
    if (field) field.type === 'checkbox' ? field.checked = true : field.value = value;
  });
  form.addEventListener('input', remember);
  form.addEventListener('submit', function (event) { event.preventDefault(); });
  form.hidden = false;
  show();

  table.querySelectorAll('th[data-sort]').forEach(function (head, _, heads) {
    var button = document.createElement('button');
    button.type = 'button';
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener('click', function () {
      var rising = head.getAttribute('aria-sort') === 'descending' ? 1 : -1;
      heads.forEach(function (each) { each.removeAttribute('aria-sort'); });
      head.setAttribute('aria-sort', rising > 0 ? 'ascending' : 'descending');
      Array.from(table.tBodies).map(function (body) {
        return {body: body, number: parseFloat(body.rows[0].cells[head.cellIndex].textContent.replace(/,/g, '')) || 0};
      }).sort(function (one, other) { return rising * (one.number - other.number); })
        .forEach(function (each) { table.appendChild(each.body); });
    });
  });
})();
