// "Try it": sends a call with the reader's own key or token. The key stays in this tab, and goes to the service alone.
import type { TryCall, TryField } from '../src/build/try-data.ts';
import { make, stored } from './dom.ts';

const elsewhere = document.body.dataset['elsewhere'] !== undefined;
const credentialKey = 'parley-docs-credential';

export function offerToTry(place: HTMLElement): void {
  const call = JSON.parse(place.dataset['call'] ?? '{}') as TryCall;
  const open = make('button', { type: 'button', className: 'action open-try', textContent: 'Try it' });
  open.addEventListener('click', () => {
    const form = formOf(call);
    place.replaceChildren(form);
    form.querySelector<HTMLElement>('input, select, textarea')?.focus();
  });
  place.replaceChildren(open);
}

interface Row {
  field: TryField;
  input: HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement;
}

function inputOf({ kind, choices, value = '', required }: TryField): Row['input'] {
  if (kind === 'choice' || kind === 'boolean') {
    const names = ['', ...(choices ?? ['true', 'false'])];
    const select = make(
      'select',
      {},
      ...names.map((name) => make('option', { value: name, textContent: name || '–' })),
    );
    select.value = value;
    return select;
  }
  if (kind === 'json') return make('textarea', { rows: 2, value, spellcheck: false });
  return make('input', { type: kind === 'number' ? 'number' : 'text', value, required, autocomplete: 'off' });
}

const labelled = (text: string, input: HTMLElement, hint = ''): HTMLLabelElement =>
  make(
    'label',
    {},
    make('span', {}, make('code', { textContent: text }), hint === '' ? '' : ` ${hint}`),
    input,
  );

function formOf(call: TryCall): HTMLFormElement {
  const service = make('input', {
    type: 'url',
    required: true,
    placeholder: 'https://chat.example.com',
    value: stored(sessionStorage, 'parley-docs-service'),
  });
  const credential = make('input', {
    type: 'password',
    autocomplete: 'off',
    required: true,
    placeholder: 'sk_live_… or a user token',
    value: stored(sessionStorage, credentialKey),
  });
  const env = make('input', {
    placeholder: 'env_…',
    autocomplete: 'off',
    value: stored(sessionStorage, 'parley-docs-env'),
  });
  const rows: Row[] = call.fields.map((field) => ({ field, input: inputOf(field) }));
  const send = make('button', { type: 'submit', className: 'action', textContent: `Send ${call.method}` });
  const forget = make('button', { type: 'button', className: 'quiet', textContent: 'Forget the key' });
  const answer = make('div', { className: 'answer' });
  answer.setAttribute('role', 'status');
  const form = make(
    'form',
    {},
    ...(elsewhere ? [labelled('Service', service)] : []),
    labelled('Key or token', credential, 'kept in this tab until you close it'),
    labelled('Environment', env, 'only with unsigned tokens'),
    ...rows.map(({ field, input }) => labelled(field.name, input, field.required ? 'required' : '')),
    make('div', { className: 'row' }, send, forget),
    answer,
  );
  form.setAttribute('aria-label', `Try ${call.name}`);
  forget.addEventListener('click', () => {
    credential.value = stored(sessionStorage, credentialKey, '');
    credential.focus();
  });
  let sure = call.method !== 'DELETE';
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    if (!sure) {
      sure = true;
      send.textContent = 'Delete it';
      return;
    }
    stored(sessionStorage, credentialKey, credential.value.trim());
    stored(sessionStorage, 'parley-docs-env', env.value.trim());
    if (elsewhere) stored(sessionStorage, 'parley-docs-service', service.value);
    send.disabled = true;
    const to = elsewhere ? service.value.replace(/\/+$/, '') : '';
    void ask(call, rows, to, credential.value.trim(), env.value.trim())
      .then((shown) => answer.replaceChildren(shown))
      .finally(() => (send.disabled = false));
  });
  return form;
}

/** The value of a field as the API takes it; undefined: it is left out. */
function valueOf({ field, input }: Row): unknown {
  const text = input.value;
  if (text === '') return undefined;
  if (field.kind === 'number') return Number(text);
  if (field.kind === 'boolean') return text === 'true';
  return field.kind === 'json' ? (JSON.parse(text) as unknown) : text;
}

async function ask(
  call: TryCall,
  rows: Row[],
  to: string,
  credential: string,
  env: string,
): Promise<HTMLElement> {
  try {
    let path = call.path;
    const query = new URLSearchParams();
    const body: Record<string, unknown> = {};
    for (const row of rows) {
      const value = valueOf(row);
      if (value === undefined) continue;
      const { name } = row.field;
      if (row.field.in === 'path') path = path.replace(`{${name}}`, encodeURIComponent(String(value)));
      else if (row.field.in === 'query') query.set(name, String(value));
      else body[name] = value;
    }
    const hasBody = call.fields.some((field) => field.in === 'body');
    const response = await fetch(`${to}${path}${query.size === 0 ? '' : `?${query.toString()}`}`, {
      method: call.method,
      credentials: 'omit',
      headers: {
        authorization: `Bearer ${credential}`,
        ...(env === '' ? {} : { 'chat-env': env }),
        ...(hasBody ? { 'content-type': 'application/json' } : {}),
      },
      ...(hasBody ? { body: JSON.stringify(body) } : {}),
    });
    return shownAnswer(response.status, response.headers.get('request-id') ?? '', await response.text());
  } catch (error) {
    return make('p', {
      className: 'bad',
      textContent: error instanceof Error ? error.message : String(error),
    });
  }
}

function shownAnswer(status: number, requestId: string, text: string): HTMLElement {
  let shown = text;
  try {
    shown = JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    // The answer is not JSON: it is shown as it came.
  }
  const head = make(
    'div',
    { className: 'code-head' },
    make('span', { className: status < 400 ? 'good' : 'bad', textContent: String(status) }),
    make('span', { className: 'note', textContent: requestId }),
    make('button', { type: 'button', className: 'copy', textContent: 'Copy' }),
  );
  return make(
    'div',
    { className: 'code' },
    head,
    make('pre', { className: 'on' }, make('code', { textContent: shown })),
  );
}
