import { closeCodes, errorCodes, errorRow } from '@parley/protocol';
import { jsonBlock } from './code.ts';
import type { AsyncApi, OpenApi, Schema } from './documents.ts';
import { fieldNames, schemaFields } from './fields.ts';
import { html, plain, prose } from './html.ts';
import type { Html } from './html.ts';
import { pages } from './navigation.ts';
import type { Page } from './page.ts';

/** The socket's frames and events, the errors and the objects. */

type Message = AsyncApi['components']['messages'][string];

const shortName = (name: string): string => name.replace(/^(client|ack|event|push)\./, '');
/** A frame and an ephemeral frame may have the same name. */
const idOf = (name: string): string => (name.startsWith('client.') ? shortName(name) : name);

function frameSection(message: Message, ack: Message | undefined): Html {
  const id = idOf(message.name);
  const data = message.payload.properties?.['d'] ?? message.payload;
  const [direction, arrow] = message.name.startsWith('client.') ? ['you send', '→'] : ['you receive', '←'];
  return html`<section class="operation" aria-labelledby="${id}">
    <div class="text">
      <h2 id="${id}"><a href="#${id}">${shortName(message.name)}</a></h2>
      <p>${prose(message.summary)}.</p>
      ${
        data.properties && Object.keys(data.properties).length > 0
          ? html`<h3>Fields of <code>d</code></h3>
              ${schemaFields(data, message.name.startsWith('client.') ? 'required' : 'optional')}`
          : data === message.payload && schemaFields(data, 'optional')
      }
      ${
        ack &&
        html`<h3>Ack</h3>
          ${schemaFields(ack.payload.properties?.['d'] ?? ack.payload, 'optional')}`
      }
    </div>
    <div class="samples">
      <div class="stuck">
        ${jsonBlock(message.examples[0]?.payload, direction, html`${arrow} ${shortName(message.name)}`)}
        ${ack && jsonBlock(ack.examples[0]?.payload, 'you receive', html`← ack`)}
      </div>
    </div>
  </section>`;
}

function framesPage(
  entry: { path: string; title: string },
  intro: Html,
  socket: AsyncApi,
  groups: { title: string; text: string; pattern: RegExp }[],
): Page {
  const all = Object.values(socket.components.messages);
  const acks = new Map(
    all.filter(({ name }) => name.startsWith('ack.')).map((one) => [shortName(one.name), one]),
  );
  const chosen = groups.map((group) => ({
    ...group,
    messages: all.filter(({ name }) => group.pattern.test(name)),
  }));
  const messages = chosen.flatMap((group) => group.messages);
  return {
    ...entry,
    kind: 'reference',
    body: html`<header class="intro">
        <p class="kicker">Reference</p>
        <h1>${entry.title}</h1>
        ${intro}
      </header>
      ${chosen.map(
        (group) =>
          html`<header class="intro between">
              <p class="kicker">${group.title}</p>
              <p>${prose(group.text)}</p>
            </header>
            ${group.messages.map((one) =>
              frameSection(one, one.name.startsWith('client.') ? acks.get(shortName(one.name)) : undefined),
            )}`,
      )}`,
    parts: messages.map(({ name }) => ({
      id: idOf(name),
      label: html`<span class="method frame">${name.startsWith('client.') ? 'send' : 'get'}</span
        >${shortName(name)}`,
    })),
    found: messages.map(({ name, summary, payload }) => ({
      id: idOf(name),
      title: shortName(name),
      text: `${plain(prose(summary))} frame socket ${fieldNames(payload.properties?.['d'])}`,
    })),
  };
}

export const socketPage = (socket: AsyncApi): Page =>
  framesPage(
    pages.socket,
    html`<p>${prose(socket.info.description)}</p>
      <p>
        A frame is <code>{ "t": type, "id": your id, "d": data }</code>; <code>re</code> of the ack or of the
        error repeats the id. The SDKs handle all of this; you need this page if you write your own client.
        The page of errors has the <a href="/docs/reference/errors#close-codes">close codes</a>.
      </p>`,
    socket,
    [
      {
        title: 'Handshake and errors',
        text: 'The answers of the service to the first frame and to a frame that it refuses.',
        pattern: /^(hello|error)$/,
      },
      {
        title: 'Frames that you send',
        text: 'Each frame with its ack, if it has one.',
        pattern: /^client\.(?!call\.)/,
      },
      {
        title: 'Frames of calls',
        text: 'The frames for the media of a call; `@parley/client/calls` sends them for you.',
        pattern: /^client\.call\./,
      },
    ],
  );

export const socketEventsPage = (socket: AsyncApi): Page =>
  framesPage(
    pages.socketEvents,
    html`<p>
      The frames that the service sends without a request: the events of each conversation, and other frames.
    </p>`,
    socket,
    [
      {
        title: 'Events of a conversation',
        text: '`seq` grows by one with each event of a conversation: a gap shows, and `GET /v1/conversations/{conversationId}/events` fills it.',
        pattern: /^event\./,
      },
      {
        title: 'Ephemeral frames',
        text: 'These frames are not stored: a client that is not connected misses them.',
        pattern: /^push\.(?!call\.)/,
      },
      { title: 'Calls', text: 'Events of calls.', pattern: /^push\.call\./ },
    ],
  );

const table = (label: string, head: string[], rows: Html[]): Html =>
  html`<div class="wide" tabindex="0" role="region" aria-label="${label}">
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

const onSocket = ({ socket }: ReturnType<typeof errorRow>): string => {
  if (socket === null) return '–';
  return typeof socket === 'object' ? `close ${socket.close}` : `${socket} frame`;
};

export function errorsPage(api: OpenApi): Page {
  const example = api.components.examples?.['version_conflict']?.value;
  return {
    ...pages.errors,
    kind: 'guide',
    body: html`<p>
        Every error has this body; the header <code>Request-Id</code> has the same <code>requestId</code>.
        Programs should use <code>code</code>: messages are for people and may change.
      </p>
      ${example !== undefined && jsonBlock(example, 'answer', html`<span class="bad">409</span>`)}
      <p>
        If an error is retryable, wait for <code>retryAfterMs</code> (in the header
        <code>Retry-After</code> in seconds) and send the same request again. With the same
        <code>Idempotency-Key</code> or <code>clientMsgId</code> the operation runs only once. The SDKs do
        this for you.
      </p>
      <h2 id="codes">Codes</h2>
      ${table(
        'Codes',
        ['Code', 'HTTP', 'Socket', 'Retry', 'Meaning'],
        errorCodes.map((code) => {
          const row = errorRow(code);
          return html`<tr id="${code}">
            <td><code>${code}</code></td>
            <td>${row.http ?? '–'}</td>
            <td>${onSocket(row)}</td>
            <td>${String(row.retryable)}</td>
            <td>${prose(row.text)}</td>
          </tr>`;
        }),
      )}
      <h2 id="close-codes">Close codes of the socket</h2>
      ${table(
        'Close codes',
        ['Code', 'Meaning', 'Action of the client'],
        Object.entries(closeCodes).map(
          ([code, { meaning, action }]) =>
            html`<tr>
              <td><code>${code}</code></td>
              <td>${meaning}</td>
              <td>${prose(action)}</td>
            </tr>`,
        ),
      )}`,
    parts: [
      { id: 'codes', label: html`Codes` },
      { id: 'close-codes', label: html`Close codes of the socket` },
    ],
    found: [
      ...errorCodes.map((code) => ({ id: code, title: code, text: `error ${errorRow(code).text}` })),
      ...Object.entries(closeCodes).map(([code, { meaning, action }]) => ({
        id: 'close-codes',
        title: `Close ${code}`,
        text: `${meaning} ${action}`,
      })),
    ],
  };
}

export function objectsPage(api: OpenApi, socket: AsyncApi): Page {
  const schemas = Object.entries({ ...api.components.schemas, ...socket.components.schemas });
  const fields = (schema: Schema): Html =>
    schema.anyOf && !schema.properties
      ? html`${schema.anyOf.map((one) => schemaFields(one, 'optional'))}`
      : schemaFields(schema, 'optional');
  return {
    ...pages.objects,
    kind: 'guide',
    body: html`<p>
        The objects in answers, frames and webhooks. Expect fields that are not listed: later versions add
        fields.
      </p>
      ${schemas.map(
        ([name, schema]) =>
          html`<h2 id="${name}">${name}</h2>
            ${fields(schema)}`,
      )}`,
    parts: schemas.map(([name]) => ({ id: name, label: html`${name}` })),
    found: schemas.map(([name, schema]) => ({ id: name, title: name, text: `object ${fieldNames(schema)}` })),
  };
}
