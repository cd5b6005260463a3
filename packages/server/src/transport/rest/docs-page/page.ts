import type { AsyncApi, OpenApi } from './documents.ts';
import { anchor, html, prose } from './html.ts';
import type { Html } from './html.ts';
import { closeCodeTable, errorTable, frameSection, operationSection, schemaSection } from './sections.ts';

interface Section {
  title: string;
  intro?: Html;
  entries: { id: string; label: Html; body: Html }[];
}

function operationSections(api: OpenApi): Section[] {
  const from = (paths: OpenApi['paths'], isWebhook: boolean) =>
    Object.entries(paths).flatMap(([path, item]) =>
      Object.entries(item).map(([verb, op]) => ({
        path,
        method: isWebhook ? 'EVENT' : verb.toUpperCase(),
        op,
      })),
    );
  const all = [...from(api.paths, false), ...from(api.webhooks ?? {}, true)];
  return api.tags.map(({ name }) => ({
    title: name,
    entries: all
      .filter(({ op }) => op.tags.includes(name))
      .map(({ path, method, op }) => ({
        id: anchor('op', op.operationId),
        label: html`<span class="method ${method.toLowerCase()}">${method}</span> ${op.operationId}`,
        body: operationSection(api, method, path, op),
      })),
  }));
}

const frameGroups: [string, RegExp, string][] = [
  ['Socket: handshake and errors', /^(hello|error)$/, ''],
  ['Socket: client frames', /^client\./, 'Sent by the client; `id` is its own and comes back as `re`.'],
  ['Socket: acks', /^ack\./, ''],
  ['Socket: events', /^event\./, 'The per-conversation stream: `seq` grows by one with each event.'],
  ['Socket: ephemeral frames', /^push\./, 'Not in the stream; lost when nobody listens.'],
];

const frameSections = (socket: AsyncApi): Section[] =>
  frameGroups.map(([title, pattern, intro]) => ({
    title,
    intro: html`<p>${prose(intro || socket.info.description)}</p>`,
    entries: Object.values(socket.components.messages)
      .filter(({ name }) => pattern.test(name))
      .map((message) => ({
        id: anchor('frame', message.name),
        label: html`${message.name.replace(/^(client|ack|event|push)\./, '')}`,
        body: frameSection(message),
      })),
  }));

export interface Guide {
  title: string;
  body: Html;
}

/** The API reference as one static page. Everything is readable without its script. */
export function page(api: OpenApi, socket: AsyncApi, guides: Guide[]): string {
  const schemas = { ...api.components.schemas, ...socket.components.schemas };
  const sections: Section[] = [
    ...guides.map(({ title, body }) => ({
      title,
      intro: html`<article class="guide">${body}</article>`,
      entries: [],
    })),
    ...operationSections(api),
    ...frameSections(socket),
    { title: 'Errors', intro: errorTable(), entries: [] },
    { title: 'Socket close codes', intro: closeCodeTable(), entries: [] },
    {
      title: 'Objects',
      entries: Object.entries(schemas).map(([name, schema]) => ({
        id: anchor('schema', name),
        label: html`${name}`,
        body: schemaSection(name, schema),
      })),
    },
  ];
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${api.info.title} API reference</title>
        <link rel="icon" href="data:," />
        <link rel="stylesheet" href="/docs/style.css" />
        <script type="module" src="/docs/script.js"></script>
      </head>
      <body>
        <nav aria-label="Contents">
          <a class="home" href="#top">${api.info.title}</a>
          <button type="button" id="menu" hidden>Menu</button>
          <input type="search" id="search" placeholder="Search ( / )" aria-label="Search" hidden />
          ${sections.map(
            ({ title, entries }) =>
              html`<section>
                <a class="group" href="#${anchor('section', title)}">${title}</a>
                <ul>
                  ${entries.map(({ id, label }) => html`<li><a href="#${id}">${label}</a></li>`)}
                </ul>
              </section>`,
          )}
        </nav>
        <main id="top">
          <h1>${api.info.title} API reference</h1>
          <p>${prose(api.info.description)}</p>
          <p>
            Machine-readable: <a href="/openapi.json">openapi.json</a> (REST),
            <a href="/asyncapi.json">asyncapi.json</a> (socket). Authorize with
            <code>Authorization: Bearer</code> and a secret key (server) or a user token (client).
          </p>
          ${sections.map(
            ({ title, intro, entries }) =>
              html`<section id="${anchor('section', title)}">
                <h2>${title}</h2>
                ${intro} ${entries.map(({ body }) => body)}
              </section>`,
          )}
        </main>
      </body>
    </html>`.text;
}
