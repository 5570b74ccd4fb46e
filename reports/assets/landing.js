/* reshape-conformance: a part of the pages of this site */
/* The table of libraries: the document of the numbers, what a reader needs, a search, and heads that sort. The address has the choice. */
(function () {
  var form = document.querySelector('form.needs'), table = document.querySelector('.big table');
  var index = JSON.parse(document.getElementById('index').textContent), output = form.querySelector('output'), found = form.querySelector('.found');
  var fields = Array.from(form.elements).filter(function (each) { return each.type === 'checkbox'; });
  var heads = Array.from(table.querySelectorAll('th[data-sort]')), sorted = null;
  var choice = form.elements.document, at = 0;  // the place of the document that judges
  var libraries = Array.from(table.tBodies, function (body) {
    var fold = document.createElement('button'), library = {body: body, fold: fold, rows: Array.from(body.rows)};
    fold.type = 'button';
    fold.setAttribute('aria-expanded', false);
    fold.addEventListener('click', function () {
      fold.setAttribute('aria-expanded', fold.getAttribute('aria-expanded') === 'false');
      show();
    });
    return library;
  });

  function has(option) { return option.hasAttribute('data-runtime'); }
  /* Judge by the chosen document, or by the first one that has shapes at run time if they are needed. */
  function judge(needs) {
    at = choice.selectedIndex;
    if (needs.indexOf('runtime') >= 0 && !has(choice.options[at])) at = Array.from(choice.options).findIndex(has);
  }
  function dot(row) { return row.lastElementChild.children[at]; }
  function numbers(row) { return dot(row).getAttribute('data-n').split(' '); }
  function label(row) { return dot(row).getAttribute('aria-label').split(': ')[1]; }
  function name(row) { return row.cells[0].firstElementChild.textContent; }
  function meets(row, need) {
    var never = ['lives', 'right', 'accepts'].indexOf(need);  // in the order of the severities
    if (never >= 0) return numbers(row)[never] === '0' && numbers(row)[4] !== '–';
    return row.getAttribute('data-has').split(' ').indexOf(need) >= 0;
  }
  /* The rows of a library with all needs, if the newest version of a backend has them. What is not claimed meets none. */
  function fitting(library, needs) {
    var rows = library.rows.filter(function (row) { return label(row) !== 'not claimed' && needs.every(function (need) { return meets(row, need); }); });
    return rows.length && meets(rows[0], 'older') ? [] : rows;
  }
  function worst(rows) { return Math.min.apply(null, rows.map(function (row) { return index.labels.indexOf(label(row)); })); }
  /* As the page does: the newest versions first, and of these the best by the document that judges. */
  function sortLines(rows) {
    return rows.sort(function (one, other) {
      return meets(one, 'older') - meets(other, 'older') || worst([other]) - worst([one]) || numbers(one)[4] - numbers(other)[4];
    });
  }
  function matches(text, words) { return words.every(function (word) { return text.indexOf(word) >= 0; }); }

  function fill(row) {
    var mark = dot(row), all = numbers(row), result = row.cells[1].firstElementChild;
    result.className = mark.className;
    result.textContent = mark.textContent + ' ' + label(row);
    all.forEach(function (number, k) {
      row.cells[k + 2].textContent = number === '0' ? '·' : number;
      row.cells[k + 2].className = 'n ' + (parseFloat(number) ? heads[k].getAttribute('data-sort') : '');
    });
    row.querySelectorAll('[data-at]').forEach(function (words) {
      words.hidden = words.getAttribute('data-at').split(' ').indexOf(String(at)) < 0;
    });
    Array.from(row.lastElementChild.children, function (each) {
      each.title = each.getAttribute('aria-label');
      each.setAttribute('aria-current', each === mark);
    });
  }
  function show() {
    var needs = fields.filter(function (field) { return field.checked; }).map(function (field) { return field.name; });
    fields.forEach(function (field) {
      var more = needs.concat(field.name);
      judge(more);
      field.parentNode.setAttribute('data-n', libraries.filter(function (library) { return fitting(library, more).length; }).length);
    });
    judge(needs);
    choice.selectedIndex = at;
    Array.from(choice.options, function (option) { option.disabled = needs.indexOf('runtime') >= 0 && !has(option); });
    var words = form.elements.text.value.toLowerCase().split(/[\s-]+/).filter(Boolean), fit = 0, conform = 0;
    var named = function (row) { return matches((name(row) + ' ' + (row.parentNode.getAttribute('data-also') || '')).toLowerCase(), words); };
    var known = libraries.some(function (library) { return library.rows.some(named); });
    document.getElementById('judged').textContent = choice.options[at].text;
    libraries.forEach(function (library) {
      var rows = fitting(library, needs), fold = library.fold, open = fold.getAttribute('aria-expanded') === 'true';
      if (known) rows = rows.filter(named);
      library.body.prepend(...sortLines(rows));  // the style indents what is not first
      library.rows.forEach(function (row) { row.hidden = rows.indexOf(row) < 0 || row !== rows[0] && !open; });
      library.body.hidden = !rows.length;
      if (!rows.length) return;
      rows.forEach(fill);
      fit += 1;
      if (label(rows[0]).indexOf('conforms') === 0) conform += 1;
      fold.textContent = (open ? '− ' : '+ ') + (rows.length - 1) + ' more';
      if (worst(rows.slice(1)) < worst([rows[0]])) fold.textContent += ', worst: ' + index.labels[worst(rows.slice(1))];
      fold.hidden = rows.length < 2;
      fold.setAttribute('aria-label', fold.textContent + ' of ' + name(rows[0]));
      rows[0].cells[0].firstElementChild.after(fold);
    });
    output.textContent = conform + ' conform, of ' + fit + ' that fit' + (sorted ? '; sorted by ' + sorted.firstChild.textContent.toLowerCase() + ', ' + sorted.getAttribute('aria-sort') : '');
    search(words);
    if (words.length && (!known || !fit)) {
      var item = document.createElement('li');
      item.textContent = known ? 'No library of this name fits what you need.' : 'No ' + (found.hasChildNodes() ? 'library' : 'library, rule or case') + ' here has this name. The table shows all that fit.';
      found.prepend(item);
    }
    order();
  }
  function search(words) {
    found.replaceChildren();
    ['rule', 'case'].forEach(function (what) {
      var all = words.length ? index[what].filter(function (id) { return matches(id, words); }) : [];
      var item = document.createElement('li'), page = index.pages[what];
      if (all.length) item.append(all.length + ' ' + what + (all.length > 1 ? 's' : '') + ': ');
      all.slice(0, 6).forEach(function (id, k) { link(item, k ? ', ' : '', id, page + '#' + what + '-' + id); });
      if (all.length > 6) link(item, ', ', 'all', page + '#filter:text=' + encodeURIComponent(words.join('-')));
      if (all.length) found.append(item);
    });
  }
  function link(item, before, text, to) {
    var a = document.createElement('a');
    a.textContent = text;
    a.href = to;
    item.append(before, a);
  }
  /* By the head that was clicked, or those that conform first and the worst last. */
  function order() {
    var rising = sorted && sorted.getAttribute('aria-sort') === 'descending' ? -1 : 1, place = sorted ? heads.indexOf(sorted) : 4;
    libraries.map(function (library) {
      var row = library.rows.find(function (each) { return !each.hidden; }) || library.rows[0];
      var share = parseFloat(numbers(row)[place]);
      return {body: library.body, rank: share >= 0 ? sorted ? 0 : -index.labels.indexOf(label(row)) : 1, share: share || 0};
    }).sort(function (one, other) { return one.rank - other.rank || rising * (one.share - other.share); })
      .forEach(function (each) { table.appendChild(each.body); });
  }

  new URLSearchParams(location.hash.slice(1)).forEach(function (value, name) {
    var field = form.elements[name];
    if (field) field.type === 'checkbox' ? field.checked = true : field.value = value;
  });
  form.addEventListener('input', function () {
    show();
    history.replaceState(null, '', '#' + new URLSearchParams(new FormData(form)).toString());
  });
  form.addEventListener('submit', function (event) { event.preventDefault(); });
  heads.forEach(function (head) {
    var button = document.createElement('button'), words = document.createElement('span');
    button.type = 'button';
    button.textContent = head.textContent;
    words.className = 'print';
    words.textContent = head.textContent;
    head.replaceChildren(button, words);  // Chromium repeats no heads with buttons on the next sheet
    button.addEventListener('click', function () {
      var way = head.getAttribute('aria-sort') === 'descending' ? 'ascending' : 'descending';
      heads.forEach(function (each) { each.removeAttribute('aria-sort'); });
      head.setAttribute('aria-sort', way);
      sorted = head;
      show();
    });
  });
  form.hidden = false;
  show();
})();
