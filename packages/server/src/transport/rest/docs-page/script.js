// The script of the reference page: search, the current section, copying, colours, tabs, and trying a call. It loads
// nothing.
const all = (selector, from = document) => [...from.querySelectorAll(selector)];
const make = (tag, props = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), props);
  element.append(...children);
  return element;
};

// Search shows the menu entries whose name or text contains every word.
const search = document.getElementById('search');
const entries = all('nav li').map((item) => {
  const target = document.getElementById(item.firstElementChild.hash.slice(1));
  // The text of an entry: names, meaning and fields, but not the errors, which nearly all have in common.
  const parts = target ? all('h3, p, td:first-child', target).map((part) => part.textContent) : [];
  return { item, text: [item.textContent, ...parts].join(' ').toLowerCase() };
});
search.hidden = false;
search.addEventListener('input', () => {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const { item, text } of entries) item.hidden = !words.every((word) => text.includes(word));
  for (const section of all('nav section'))
    section.hidden = words.length > 0 && !all('li', section).some((item) => !item.hidden);
});
document.addEventListener('keydown', (event) => {
  if (event.key !== '/' || /^(INPUT|TEXTAREA)$/.test(document.activeElement?.tagName ?? '')) return;
  event.preventDefault();
  search.focus();
});

// The menu on a phone.
const menu = document.getElementById('menu');
menu.hidden = false;
menu.addEventListener('click', () => document.body.classList.toggle('menu-open'));
document.querySelector('nav').addEventListener('click', (event) => {
  if (event.target.closest('a')) document.body.classList.remove('menu-open');
});

// Marks the menu entry of the section that one reads: the last that begins above a line in the upper part of the screen.
const links = new Map(all('nav a[href^="#"]').map((link) => [link.hash.slice(1), link]));
const sections = [...links.keys()]
  .map((id) => document.getElementById(id))
  .filter((one) => one && one.id !== 'top');
let current;
const observer = new IntersectionObserver(
  () => {
    const section = sections.findLast((one) => one.getBoundingClientRect().top <= innerHeight / 8);
    const link = section && links.get(section.id);
    if (!link || link === current) return;
    current?.removeAttribute('aria-current');
    current = link;
    link.setAttribute('aria-current', 'true');
    link.scrollIntoView({ block: 'nearest' });
  },
  { rootMargin: '0px 0px -87.5% 0px' },
);
for (const section of sections) observer.observe(section);

// Colours strings, numbers, keywords and comments.
const token =
  /(?<comment>\/\/.*|#.*$)|(?<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`(?:\\.|[^`\\])*`)|(?<number>\b\d[\d_.]*\b)|(?<word>\b(?:await|async|const|let|new|return|import|from|function|func|def|class|public|static|void|package|require|echo|puts|print|curl|true|false|null|if|for)\b)/gm;
function colour(code) {
  const text = code.textContent;
  const parts = [];
  let at = 0;
  for (const match of text.matchAll(token)) {
    parts.push(text.slice(at, match.index));
    const kind = Object.entries(match.groups).find(([, value]) => value !== undefined)[0];
    parts.push(make('span', { className: kind, textContent: match[0] }));
    at = match.index + match[0].length;
  }
  code.replaceChildren(...parts, text.slice(at));
}

// Adds a button that copies the code.
function decorate(pre) {
  const code = pre.querySelector('code');
  colour(code);
  const button = make('button', { type: 'button', className: 'copy', textContent: 'Copy' });
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(code.textContent).catch(() => undefined);
    button.textContent = 'Copied';
    setTimeout(() => (button.textContent = 'Copy'), 1500);
  });
  const holder = make('div', { className: 'code' });
  pre.replaceWith(holder);
  holder.append(pre, button);
}
all('pre').forEach(decorate);

// Tabs: a language that was chosen once is chosen everywhere.
const stored = (key, value) => {
  try {
    if (value === undefined) return sessionStorage.getItem(key) ?? '';
    sessionStorage.setItem(key, value);
  } catch {
    // There is no storage here, so the value is asked for again.
  }
  return value ?? '';
};
function choose(name) {
  for (const tabs of all('.tabs')) {
    const panels = all(':scope > [data-tab]', tabs);
    const shown = panels.find((panel) => panel.dataset.tab === name) ?? panels[0];
    for (const panel of panels) panel.hidden = panel !== shown;
    for (const button of all(':scope > .bar button', tabs))
      button.setAttribute('aria-pressed', String(button.textContent === shown.dataset.tab));
  }
}
for (const tabs of all('.tabs')) {
  const bar = make('div', { className: 'bar' });
  for (const panel of all(':scope > [data-tab]', tabs)) {
    const button = make('button', { type: 'button', textContent: panel.dataset.tab });
    button.addEventListener('click', () => choose(stored('docs-tab', panel.dataset.tab)));
    bar.append(button);
  }
  tabs.prepend(bar);
}
choose(stored('docs-tab'));

// Sends a call with the reader's own credential, to this service and nowhere else.
function tryForm({ method, path, body }) {
  const credential = make('input', {
    type: 'password',
    autocomplete: 'off',
    placeholder: 'sk_live_… or a user token',
    value: stored('docs-credential'),
  });
  const env = make('input', { placeholder: 'env_… (development tokens)', value: stored('docs-env') });
  const names = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]);
  const params = names.map((name) => make('input', { name, placeholder: name }));
  const query = make('input', { placeholder: 'query, for example limit=10' });
  const text = make('textarea', { rows: 6, value: body, spellcheck: false });
  const send = make('button', { type: 'submit', textContent: `${method} it` });
  const answer = make('div');
  const field = (label, input) => make('label', {}, label, input);
  const form = make(
    'form',
    { className: 'try' },
    field('Credential', credential),
    field('Environment', env),
    ...params.map((input) => field(input.name, input)),
    field('Query', query),
    ...(body ? [field('Body', text)] : []),
    send,
    answer,
  );
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    if (method === 'DELETE' && !confirm('This deletes something. Go on?')) return;
    stored('docs-credential', credential.value);
    stored('docs-env', env.value);
    const url = names.reduce(
      (filled, name, i) => filled.replace(`{${name}}`, encodeURIComponent(params[i].value)),
      path,
    );
    const headers = { authorization: `Bearer ${credential.value}` };
    if (env.value) headers['chat-env'] = env.value;
    if (body) headers['content-type'] = 'application/json';
    send.disabled = true;
    try {
      const response = await fetch(url + (query.value ? `?${query.value}` : ''), {
        method,
        headers,
        credentials: 'omit',
        ...(body ? { body: text.value } : {}),
      });
      const said = await response.text();
      let shown = said;
      try {
        shown = JSON.stringify(JSON.parse(said), null, 2);
      } catch {
        // The answer is not JSON, so it is shown unchanged.
      }
      const pre = make(
        'pre',
        {},
        make('code', {
          textContent: `${response.status} ${response.headers.get('request-id') ?? ''}\n${shown}`,
        }),
      );
      answer.replaceChildren(pre);
      decorate(pre);
    } catch (error) {
      answer.textContent = String(error);
    }
    send.disabled = false;
  });
  return form;
}
for (const article of all('article[data-path]')) {
  const button = make('button', { type: 'button', className: 'open-try', textContent: 'Try it' });
  button.addEventListener('click', () => button.replaceWith(tryForm(article.dataset)));
  article.append(button);
}
