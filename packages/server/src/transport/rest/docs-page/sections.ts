import { closeCodes, errorCodes, errorRow } from '@parley/protocol';
import type { ApiOperation, ApiResponse, AsyncApi, OpenApi, Parameter, Schema } from './documents.ts';
import { anchor, html, json, prose, rulesOf, typeOf } from './html.ts';
import type { Html } from './html.ts';

const deepest = 4;

/** The fields of an object; fields of nested objects follow with a dotted name. */
function fieldRows(schema: Schema, prefix = '', depth = 0): Html[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const path = prefix + name;
    const row = html`<tr>
      <td><code>${path}</code>${!schema.required?.includes(name) && html` <small>optional</small>`}</td>
      <td>${typeOf(field)}</td>
      <td>${rulesOf(field)}</td>
    </tr>`;
    const inner = field.type === 'array' ? field.items : field;
    const nested =
      inner?.properties && depth < deepest
        ? fieldRows(inner, `${path}${field.type === 'array' ? '[]' : ''}.`, depth + 1)
        : [];
    return [row, ...nested];
  });
}

const table = (head: string[], rows: Html[]): Html =>
  html`<div class="wide">
    <table>
      <thead>
        <tr>
          ${head.map((cell) => html`<th>${cell}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${rows}
      </tbody>
    </table>
  </div>`;

export function schemaTable(schema: Schema): Html {
  if (schema.$ref !== undefined || !schema.properties) return html`<p><code>${typeOf(schema)}</code></p>`;
  const rows = fieldRows(schema);
  return rows.length > 0 ? table(['Field', 'Type', ''], rows) : html`<p>No fields.</p>`;
}

const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

function curl(method: string, path: string, op: ApiOperation): Html {
  const names: Record<string, string> = { userId: 'alice' };
  const url = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => names[name] ?? `$${name}`);
  const credential = op['x-callers']?.includes('server') ? '$SECRET_KEY' : '$USER_TOKEN';
  const body = op.requestBody?.content['application/json'].example;
  const lines = [`curl${method === 'GET' ? '' : ` -X ${method}`} "$BASE_URL${url}"`];
  if (op['x-callers']) lines.push(`-H "Authorization: Bearer ${credential}"`);
  if (body !== undefined)
    lines.push(`-H 'Content-Type: application/json'`, `-d ${quote(JSON.stringify(body))}`);
  return html`<pre><code>${lines.join(' \\\n  ')}</code></pre>`;
}

/** The methods of the server SDK are named like the operations, and take the ids of the path, then the fields. */
function sdk(path: string, op: ApiOperation): Html | false {
  if (!op['x-callers']?.includes('server')) return false;
  const ids = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => (name === 'userId' ? `'alice'` : name!));
  const body = op.requestBody?.content['application/json'].example;
  const fields = body === undefined ? [] : [JSON.stringify(body, null, 2).replaceAll(/"(\w+)":/g, '$1:')];
  const call = `parley.${op.operationId}(${[...ids, ...fields].join(', ')})`;
  const lines = [
    `import { Parley } from '@parley/server-sdk';`,
    `const parley = new Parley({ url: baseUrl, secretKey });`,
    '',
    `const answer = await ${call};`,
  ];
  return html`<pre><code>${lines.join('\n')}</code></pre>`;
}

function samples(method: string, path: string, op: ApiOperation): Html {
  const node = sdk(path, op);
  return html`<div class="tabs">
    <div data-tab="curl">${curl(method, path, op)}</div>
    ${node && html`<div data-tab="Node SDK">${node}</div>`}
  </div>`;
}

function answer(status: string, response: ApiResponse): Html {
  const content = response.content?.['application/json'];
  const others = Object.keys(response.content ?? {}).filter((type) => type !== 'application/json');
  const line = response.content?.['application/jsonl']?.schema['x-line'];
  return html`<h4><span class="status">${status}</span> ${prose(response.description)}</h4>
    ${content && schemaTable(content.schema)}
    ${
      others.length > 0 &&
      html`<p>
        ${content ? 'Also as' : 'As'}
        ${others.map((type, i) => html`${i > 0 && ', '}<code>${type}</code>`)}${line && html`; a line: ${typeOf(line)}`}
      </p>`
    }
    ${
      content?.example !== undefined &&
      html`<details>
        <summary>Example</summary>
        ${json(content.example)}
      </details>`
    }`;
}

function errorsOf(responses: ApiResponse[]): Html {
  const codes = responses.flatMap((response) => response['x-error-codes'] ?? []);
  return html`<ul class="codes">
    ${codes.map((code) => {
      const http = errorRow(code as (typeof errorCodes)[number]).http;
      return html`<li>
        <a href="#${anchor('error', code)}"><span class="status">${http}</span> ${code}</a>
      </li>`;
    })}
  </ul>`;
}

export function operationSection(api: OpenApi, method: string, path: string, op: ApiOperation): Html {
  const { components } = api;
  const last = (ref: string): string => ref.split('/').at(-1) ?? '';
  const parameters = (op.parameters ?? []).map((one): Parameter =>
    one.$ref === undefined ? one : (components.parameters[last(one.$ref)] ?? one),
  );
  const responses = Object.entries(op.responses).map(([status, one]): [string, ApiResponse] => [
    status,
    one.$ref === undefined ? one : (components.responses[last(one.$ref)] ?? one),
  ]);
  const failures = responses.map(([, one]) => one).filter((one) => one['x-error-codes']);
  const body = op.requestBody?.content['application/json'];
  // Trying a call needs a key or a token, so it is not offered for operations that need the dashboard's cookie.
  const callable = op['x-callers']?.some((one) => one === 'server' || one === 'client');
  const example = body?.example === undefined ? '' : JSON.stringify(body.example, null, 2);
  const tried = callable ? html` data-method="${method}" data-path="${path}" data-body="${example}"` : html``;
  return html`<article id="${anchor('op', op.operationId)}" ${tried}>
    <h3><span class="method ${method.toLowerCase()}">${method}</span> <code>${path}</code></h3>
    <p>${prose(op.summary)}${op.deprecated && html` <strong>Deprecated.</strong>`}</p>
    ${op.description !== undefined && html`<p>${prose(op.description)}</p>`}
    ${op['x-callers'] && html`<p class="callers">Callers: ${op['x-callers'].map((one) => html`<span>${one}</span>`)}</p>`}
    ${
      parameters.length > 0 &&
      html`<h4>Parameters</h4>
        ${table(
          ['Name', 'In', 'Type', ''],
          parameters.map(
            (one) =>
              html`<tr>
                <td><code>${one.name}</code>${!one.required && html` <small>optional</small>`}</td>
                <td>${one.in}</td>
                <td>${typeOf(one.schema)}</td>
                <td>${one.description !== undefined ? prose(one.description) : rulesOf(one.schema)}</td>
              </tr>`,
          ),
        )}`
    }
    ${
      body &&
      html`<h4>Body</h4>
        ${schemaTable(body.schema)}`
    }
    ${op['x-callers'] && samples(method, path, op)}
    ${responses.filter(([, one]) => !one['x-error-codes']).map(([status, one]) => answer(status, one))}
    ${
      failures.length > 0 &&
      html`<h4>Errors</h4>
        ${errorsOf(failures)}`
    }
  </article>`;
}

export const frameSection = (message: AsyncApi['components']['messages'][string]): Html =>
  html`<article id="${anchor('frame', message.name)}">
    <h3><code>${message.name.replace(/^(client|ack|event|push)\./, '')}</code></h3>
    <p>${prose(message.summary)}</p>
    ${schemaTable(message.payload)} ${json(message.examples[0]?.payload)}
  </article>`;

export const schemaSection = (name: string, schema: Schema): Html =>
  html`<article id="${anchor('schema', name)}">
    <h3>${name}</h3>
    ${schema.anyOf && !schema.properties ? schema.anyOf.map((one) => schemaTable(one)) : schemaTable(schema)}
  </article>`;

export const errorTable = (): Html =>
  table(
    ['Code', 'Type', 'HTTP', 'Socket', 'Retryable', 'Meaning'],
    errorCodes.map((code) => {
      const row = errorRow(code);
      const socket =
        typeof row.socket === 'object' ? row.socket && `close ${row.socket.close}` : `${row.socket} frame`;
      return html`<tr id="${anchor('error', code)}">
        <td><code>${code}</code></td>
        <td>${row.type}</td>
        <td>${row.http ?? '–'}</td>
        <td>${socket ?? '–'}</td>
        <td>${row.retryable}</td>
        <td>${prose(row.text)}</td>
      </tr>`;
    }),
  );

export const closeCodeTable = (): Html =>
  table(
    ['Code', 'Meaning', 'Client action'],
    Object.entries(closeCodes).map(
      ([code, { meaning, action }]) =>
        html`<tr>
          <td><code>${code}</code></td>
          <td>${meaning}</td>
          <td>${prose(action)}</td>
        </tr>`,
    ),
  );
