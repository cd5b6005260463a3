import { clientFrames, costOf, errorRow, operations } from '@parley/protocol';
import type { ErrorCode, Operation, OperationName } from '@parley/protocol';
import { codeBlock, jsonBlock } from './code.ts';
import type { AsyncApi, OpenApi } from './documents.ts';
import { fieldNames, parameterFields, schemaFields } from './fields.ts';
import { html, plain, prose, typeOf } from './html.ts';
import type { Html } from './html.ts';
import type { Page } from './page.ts';
import { callsOf, webhooksOf } from './reference-call.ts';
import type { Call } from './reference-call.ts';
import { filled, samples } from './samples.ts';
import { pages } from './navigation.ts';
import type { Resource } from './navigation.ts';
import { tryData } from './try-data.ts';

/** A page of the reference: every operation of a resource, its text on the left and its request and answer on the right. */

const sentence = (text: string): string => (text === '' || /[.!?:]$/.test(text) ? text : `${text}.`);

const callerTexts: Record<string, string> = {
  server: 'a secret key',
  client: 'a user’s token',
  dashboard: 'the dashboard',
  anyone: 'no credential',
};
const rateTexts: Record<string, string> = {
  send: 'counts as a message of the user: 10 a second',
  upload: 'counts as an upload of the user: 30 a minute',
};

/** The callers and the cost of an operation, in one line. */
function terms(call: Call): Html {
  const { op, parameters } = call;
  const name = op.operationId;
  const declared = (operations as Record<string, Operation>)[name];
  const callers = (op['x-callers'] ?? []).map((one) => callerTexts[one] ?? one);
  const parts = [
    callers.length > 0 && `With ${callers.join(', ').replace(/, ([^,]*)$/, ' or $1')}`,
    declared && rateTexts[declared.rate],
    declared && costText(call),
    declared?.recent && 'within 15 minutes after a sign-in',
    parameters.some((one) => one.name === 'Idempotency-Key') && 'takes an Idempotency-Key',
  ].filter((part) => typeof part === 'string');
  return html`<p class="terms">${parts.join(' · ')}</p>`;
}

/** What the example costs. */
function costText(call: Call): string | undefined {
  const { query, body } = filled(call);
  const cost = costOf(call.op.operationId as OperationName, { ...query, ...body });
  return cost === 0 ? undefined : `cost ${Math.round(cost * 10) / 10}`;
}

const endpoint = (method: string, path: string): Html =>
  html`<div class="endpoint">
    <b class="${method.toLowerCase()}">${method}</b>
    <span
      >${path.split(/(\{\w+\})/).map((part) => (part.startsWith('{') ? html`<i>${part}</i>` : part))}</span
    >
  </div>`;

function successes({ responses, op }: Call): Html[] {
  return responses
    .filter(([, one]) => !one['x-error-codes'])
    .map(([status, one]) => {
      const content = one.content?.['application/json'];
      const others = Object.keys(one.content ?? {}).filter((type) => type !== 'application/json');
      const text = one.description === op.summary ? '' : one.description;
      return html`<div>
        <dt><code class="good">${status}</code></dt>
        <dd>
          ${text !== '' && prose(sentence(text))}
          ${content && html`<span class="gives">Gives ${shapeOf(content.schema)}.</span>`}
          ${others.length > 0 && html`Also as ${others.map((type, i) => html`${i > 0 && ', '}<code>${type}</code>`)}.`}
        </dd>
      </div>`;
    });
}
const shapeOf = (schema: Parameters<typeof typeOf>[0]): Html =>
  schema.$ref === undefined && schema.properties
    ? html`the fields below`
    : html`<code>${typeOf(schema)}</code>`;

/** Its own errors with their texts, and the names of those that any call may get. */
function failures({ op, responses }: Call): Html {
  const all = responses.flatMap(([, one]) => (one['x-error-codes'] ?? []) as ErrorCode[]);
  const declared = (operations as Record<string, Operation>)[op.operationId]?.errors ?? all;
  const own = all.filter((code) => declared.includes(code));
  const others = all.filter((code) => !own.includes(code));
  const link = (code: ErrorCode): Html =>
    html`<a href="/docs/${pages.errors.path}#${code}">${errorRow(code).http} ${code}</a>`;
  return html`${own.map(
    (code) =>
      html`<div>
        <dt>
          <a class="bad" href="/docs/${pages.errors.path}#${code}"
            ><code>${errorRow(code).http} ${code}</code></a
          >
        </dt>
        <dd>${prose(errorRow(code).text)}</dd>
      </div>`,
  )}
  ${
    others.length > 0 &&
    html`<div>
      <dt><span class="any">Any call</span></dt>
      <dd class="others">${others.map((code, i) => html`${i > 0 && ', '}${link(code)}`)}</dd>
    </div>`
  }`;
}

/** The answer to the example: what was sent comes back. */
function exampleOf(call: Call): [status: string, example: unknown] | undefined {
  const [status, response] =
    call.responses.find(
      ([, one]) => one.content?.['application/json']?.example !== undefined && !one['x-error-codes'],
    ) ?? [];
  const example = response?.content?.['application/json']?.example;
  if (status === undefined || typeof example !== 'object' || example === null) return undefined;
  const sent = Object.entries(filled(call).body ?? {}).filter(
    ([name, value]) => typeof (example as Record<string, unknown>)[name] === typeof value,
  );
  return [status, { ...example, ...Object.fromEntries(sent) }];
}

/** The frame of the socket that runs the same operation. */
function sameFrame({ op }: Call, socket: AsyncApi): Html | false {
  const frames = Object.entries(clientFrames as Record<string, { runs?: { operation: string } }>);
  const [type] = frames.find(([, frame]) => frame.runs?.operation === op.operationId) ?? [];
  if (type === undefined) return false;
  const payload = socket.components.messages[`client.${type}`]?.examples[0]?.payload;
  return jsonBlock(payload, 'the same, on a socket', html`<span class="good">↗</span> ${type}`);
}

function inlineAnswer({ responses }: Call): Html | false {
  const schema = responses.find(([, one]) => !one['x-error-codes'])?.[1].content?.['application/json']
    ?.schema;
  if (!schema?.properties) return false;
  return html`<h3>Answer</h3>
    ${schemaFields(schema, 'optional')}`;
}

function operationSection(call: Call, socket: AsyncApi): Html {
  const { op, method, path, parameters, body, responses } = call;
  const id = op.operationId;
  // `env` and `Chat-Env` belong to development tokens, which the guide describes.
  const named = (where: string) => parameters.filter((one) => one.in === where && one.name !== 'env');
  const example = exampleOf(call);
  const none = responses.find(([status]) => status === '204');
  const group = (title: string, list: typeof parameters): Html | false =>
    list.length > 0 &&
    html`<h3>${title}</h3>
      ${parameterFields(list)}`;
  return html`<section class="operation" aria-labelledby="${id}">
    <div class="text">
      <h2 id="${id}"><a href="#${id}">${prose(op.summary)}</a></h2>
      <p class="name"><code>${id}</code>${op.deprecated && html` <strong>Deprecated</strong>`}</p>
      ${op.description !== undefined && html`<p>${prose(op.description)}</p>`} ${endpoint(method, path)}
      ${op['x-callers'] && terms(call)} ${group('Path', named('path'))} ${group('Query', named('query'))}
      ${
        body &&
        html`<h3>Body</h3>
          ${schemaFields(body.schema, 'required')}`
      }
      <h3>Answers</h3>
      <dl class="fields answers">${successes(call)} ${failures(call)}</dl>
      ${inlineAnswer(call)}
    </div>
    <div class="samples">
      <div class="stuck">
        ${op['x-callers'] && codeBlock(samples(call), '', 'curl')}
        ${
          example
            ? jsonBlock(example[1], 'answer', html`<span class="good">${example[0]}</span>`)
            : none && html`<p class="nothing"><span class="good">204</span> The answer has no content.</p>`
        }
        ${sameFrame(call, socket)} ${tryData(call, filled(call))}
      </div>
    </div>
  </section>`;
}

const methodTag = (method: string): Html =>
  html`<span class="method ${method.toLowerCase()}">${method === 'DELETE' ? 'DEL' : method}</span>`;

/** The page of a resource. */
export function resourcePage(api: OpenApi, socket: AsyncApi, resource: Resource): Page {
  const calls = callsOf(api).filter(({ op }) => resource.tags.includes(op.tags[0] ?? ''));
  return {
    ...resource,
    kind: 'reference',
    body: html`<header class="intro">
        <p class="kicker">Reference</p>
        <h1>${resource.title}</h1>
      </header>
      ${calls.map((call) => operationSection(call, socket))}`,
    parts: calls.map(({ op, method }) => ({
      id: op.operationId,
      label: html`${methodTag(method)}${op.operationId}`,
    })),
    found: calls.map(({ op, method, path, body, parameters }) => ({
      id: op.operationId,
      title: plain(prose(op.summary)),
      text: [
        op.operationId,
        method,
        path,
        plain(prose(op.description ?? '')),
        parameters.map(({ name }) => name).join(' '),
        fieldNames(body?.schema),
      ].join(' '),
    })),
  };
}

/** What an endpoint of yours is sent. */
export function webhookEventsPage(api: OpenApi): Page {
  const calls = webhooksOf(api);
  const [first] = calls;
  return {
    ...pages.webhookEvents,
    kind: 'reference',
    body: html`<header class="intro">
        <p class="kicker">Reference</p>
        <h1>Webhook events</h1>
        <p>
          Each is a POST to your endpoint, signed by Standard Webhooks. Any 2xx within 10 s is success;
          anything else is tried again, ten times over three days. The
          <a href="/docs/guides/webhooks">guide</a> shows how to receive them.
        </p>
        <h2>Headers</h2>
        ${parameterFields(first?.parameters ?? [])}
      </header>
      ${calls.map(
        ({ path, op, body }) =>
          html`<section class="operation" aria-labelledby="${path}">
            <div class="text">
              <h2 id="${path}"><a href="#${path}">${path}</a></h2>
              ${op.description !== undefined && html`<p>${prose(op.description)}</p>`}
              ${body && schemaFields(body.schema, 'optional')}
            </div>
            <div class="samples">
              <div class="stuck">${body && jsonBlock(body.example, 'sent to you', path)}</div>
            </div>
          </section>`,
      )}`,
    parts: calls.map(({ path }) => ({ id: path, label: html`${path}` })),
    found: calls.map(({ path, op, body }) => ({
      id: path,
      title: path,
      text: `${plain(prose(op.description ?? ''))} webhook ${fieldNames(body?.schema)}`,
    })),
  };
}
