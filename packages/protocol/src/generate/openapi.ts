import * as protocol from '../index.ts';
import {
  acceptsIdempotencyKey,
  errorCodes,
  errorRow,
  ErrorBody,
  httpCallers,
  limits,
  operationList,
} from '../index.ts';
import type { Caller, ErrorCode, Format, Operation } from '../index.ts';
import { webhookTexts } from '../texts/properties.ts';
import { describeFields, describeParameters } from './describe.ts';
import { operationErrors } from './operation-errors.ts';
import { sample } from './sample.ts';
import { isObject, schemaRegistry } from './schemas.ts';
import type { Json, JsonObject } from './schemas.ts';

const ref = (kind: string, name: string): JsonObject => ({ $ref: `#/components/${kind}/${name}` });
const header = (description: string, schema: JsonObject): JsonObject => ({ description, schema });
const integer = { type: 'integer', minimum: 0 };

const schemeOf: Record<Exclude<Caller, 'operator' | 'anyone'>, string> = {
  server: 'secretKey',
  client: 'userToken',
  dashboard: 'session',
};
const securitySchemes: JsonObject = {
  secretKey: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'sk_live_<keyId>_<secret>',
    description: 'A customer server’s secret key: everything in its environment.',
  },
  userToken: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: 'A user token (HS256, `kid`, `sub`, `iat`, `exp`): acts as that user.',
  },
  session: {
    type: 'apiKey',
    in: 'cookie',
    name: 'parley_session',
    description: 'The dashboard’s session cookie, with the environment in `Chat-Env`.',
  },
};

const headers: JsonObject = {
  'Request-Id': header('Names the request in errors and logs', { type: 'string', pattern: '^req_' }),
  'RateLimit-Limit': header('Requests the window allows', integer),
  'RateLimit-Remaining': header('Requests left in the window', integer),
  'RateLimit-Reset': header('Seconds until the window is full again', integer),
  'Retry-After': header('Seconds to wait before the next try', integer),
  'Idempotent-Replayed': header('Present where the stored answer was replayed', {
    type: 'string',
    const: 'true',
  }),
};
const headerRefs = (...names: string[]): JsonObject =>
  Object.fromEntries(names.map((name) => [name, ref('headers', name)]));
const everywhere = ['Request-Id', 'RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset'];

const parameters: JsonObject = {
  IdempotencyKey: {
    name: 'Idempotency-Key',
    in: 'header',
    description: `Makes a retry safe: the same key and body replay the stored answer for ${limits.idempotencyHours} hours. 1 to 255 visible characters; a UUID is a good choice.`,
    schema: { type: 'string', pattern: protocol.idempotencyKeyPattern },
  },
  ChatEnv: {
    name: 'Chat-Env',
    in: 'header',
    description:
      'The environment’s id; required for development tokens, else checked against the credential.',
    schema: { type: 'string', pattern: protocol.environmentIdPattern },
  },
  env: {
    name: 'env',
    in: 'query',
    description: 'The same as `Chat-Env`, for clients that cannot set headers.',
    schema: { type: 'string', pattern: protocol.environmentIdPattern },
  },
};

const errorExample = (code: ErrorCode): Json => ({
  summary: code,
  value: {
    error: {
      type: errorRow(code).type,
      code,
      message: errorRow(code).text,
      ...(code === 'invalid_request' || code === 'unknown_field' ? { param: 'field' } : {}),
      requestId: 'req_01hzy3v7k8m2q4r6t8w0x2z4d9',
      ...(errorRow(code).retryAfterMs === null ? {} : { retryAfterMs: errorRow(code).retryAfterMs }),
    },
  },
});

type Use = ReturnType<typeof schemaRegistry>['use'];
const plain = (schema: object): JsonObject => JSON.parse(JSON.stringify(schema)) as JsonObject;

function fieldParameters(op: Operation, where: 'path' | 'query', use: Use): Json[] {
  const object = where === 'path' ? op.params : op.query;
  const required = new Set<string>(plain(object).required as string[] | undefined);
  return Object.entries(object.properties).map(([name, schema]) => {
    const { description, ...rest } = use(schema);
    return {
      name,
      in: where,
      required: required.has(name),
      ...(description === undefined ? {} : { description }),
      schema: rest,
    };
  });
}

/** Responses that many operations share are components, named by their status and codes. */
function errorResponses(op: Operation, responses: JsonObject): JsonObject {
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of operationErrors(op)) {
    const { http } = errorRow(code);
    if (http !== null) byStatus.set(http, [...(byStatus.get(http) ?? []), code]);
  }
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => {
      const name = [status, ...codes].join('.');
      responses[name] ??= {
        description: codes.map((code) => `\`${code}\`: ${errorRow(code).text}`).join('\n\n'),
        headers: headerRefs(...everywhere, ...(status === 429 ? ['Retry-After'] : [])),
        content: {
          'application/json': {
            schema: ref('schemas', 'Error'),
            examples: Object.fromEntries(codes.map((code) => [code, ref('examples', code)])),
          },
        },
        'x-error-codes': codes,
      };
      return [String(status), ref('responses', name)];
    }),
  );
}

/** A generator knows JSON; what is not a single JSON value is text to it. */
function contentOf(format: Format, op: Operation, use: Use): JsonObject {
  const response = plain(op.response!);
  if (format === 'application/json') return { schema: use(response), example: sample(response) };
  if (format === 'text/csv')
    return { schema: { type: 'string', description: 'RFC 4180, with a row of headers' } };
  const { properties } = response as { properties?: { data?: { items?: JsonObject } } };
  const line = properties?.data?.items ?? response;
  return {
    schema: { type: 'string', description: 'A JSON object a line', 'x-line': use(line) },
    example: `${JSON.stringify(sample(line))}\n`,
  };
}

function pathItem(op: Operation, use: Use, shared: JsonObject): JsonObject {
  const client = op.callers.includes('client');
  const success = op.statuses.map((status) => [
    String(status),
    {
      description: status === 204 ? 'Done; no content' : op.summary,
      headers: headerRefs(...everywhere, ...(acceptsIdempotencyKey(op) ? ['Idempotent-Replayed'] : [])),
      ...(op.response && status !== 204
        ? {
            content: Object.fromEntries(
              op.formats.map((format) => [format, contentOf(format, op, use)]),
            ) as JsonObject,
          }
        : {}),
    },
  ]);
  return {
    operationId: op.name,
    summary: op.summary,
    description: op.text,
    tags: [op.tag],
    ...(op.deprecated
      ? { deprecated: true, 'x-deprecated-since': op.deprecated.since, 'x-sunset': op.deprecated.sunset }
      : {}),
    security: httpCallers(op).flatMap((caller) => (caller === 'anyone' ? [] : [{ [schemeOf[caller]]: [] }])),
    'x-callers': httpCallers(op),
    ...(op.permission === null ? {} : { 'x-permission': op.permission }),
    'x-rate-class': op.rate,
    parameters: [
      ...fieldParameters(op, 'path', use),
      ...fieldParameters(op, 'query', use),
      ...(acceptsIdempotencyKey(op) ? [ref('parameters', 'IdempotencyKey')] : []),
      ...(client || (op.callers.includes('dashboard') && op.scope === 'environment')
        ? [ref('parameters', 'ChatEnv')]
        : []),
      ...(client ? [ref('parameters', 'env')] : []),
    ],
    ...(op.body
      ? {
          requestBody: {
            required: !op.bodyOptional,
            content: { 'application/json': { schema: use(op.body), example: sample(plain(op.body)) } },
          },
        }
      : {}),
    responses: { ...Object.fromEntries(success), ...errorResponses(op, shared) },
  };
}

const signatureHeaders: [string, string][] = [
  ['webhook-id', 'The event id; deduplicate by it'],
  ['webhook-timestamp', 'Unix seconds; refuse what is more than 5 minutes away'],
  ['webhook-signature', '`v1,<base64>`, several separated by a space (Standard Webhooks)'],
];

/** webhooks#catalogue: the webhook deliveries, from `webhookEvents` (`data` by event type). */
export function webhooks(events: Record<string, object>, use: Use): JsonObject {
  return Object.fromEntries(
    Object.entries(events).map(([type, data]) => {
      const envelope = {
        type: 'object',
        required: ['id', 'type', 'createdAt', 'env', 'data'],
        properties: {
          id: { type: 'string', pattern: '^evt_' },
          type: { type: 'string', const: type },
          createdAt: { type: 'string', format: 'date-time' },
          env: { type: 'string', pattern: '^env_' },
          data: plain(data),
        },
      };
      const post = {
        operationId: `webhook.${type}`,
        summary: type,
        ...(webhookTexts[type] === undefined ? {} : { description: webhookTexts[type] }),
        tags: ['Webhook events'],
        security: [],
        parameters: signatureHeaders.map(([name, description]) => ({
          name,
          in: 'header',
          required: true,
          description,
          schema: { type: 'string' },
        })),
        requestBody: {
          required: true,
          content: { 'application/json': { schema: use(envelope), example: sample(envelope) } },
        },
        responses: { '2XX': { description: 'Any 2xx within 10 s is success; else it is tried again.' } },
      };
      return [type, { post }];
    }),
  );
}

const health = (path: string, summary: string, statuses: Record<string, string>): JsonObject => ({
  [path]: {
    get: {
      operationId: path.slice(1),
      summary,
      description:
        path === '/healthz'
          ? 'For a supervisor: restart what does not answer.'
          : 'For a load balancer: send requests only where it is 200.',
      tags: ['Health'],
      security: [],
      responses: Object.fromEntries(
        Object.entries(statuses).map(([status, description]) => [status, { description }]),
      ),
    },
  },
});

function describeOperation(op: JsonObject): void {
  const name = op.operationId as string;
  describeParameters((op.parameters as Json[] | undefined) ?? [], name);
  for (const part of [op.requestBody, ...Object.values(op.responses as JsonObject)])
    if (isObject(part) && isObject(part.content))
      describeFields((part.content['application/json'] as JsonObject | undefined)?.schema, name);
}

/** OpenAPI 3.1 of the REST API, from the operation and error tables alone. */
export function openapi(): JsonObject {
  const { components: schemas, use } = schemaRegistry();
  use(ErrorBody);
  const responses: JsonObject = {};
  const paths: { [path: string]: JsonObject } = {};
  for (const op of operationList) {
    (paths[op.path] ??= {})[op.method.toLowerCase()] = pathItem(op, use, responses);
  }
  const events = (protocol as Record<string, unknown>).webhookEvents;
  const sent = isObject(events) ? webhooks(events as Record<string, object>, use) : null;
  for (const [title, schema] of Object.entries(schemas)) describeFields(schema, title);
  for (const item of [...Object.values(paths), ...Object.values(sent ?? {})])
    for (const op of Object.values(item as Record<string, JsonObject>)) describeOperation(op);
  return {
    openapi: '3.1.0',
    info: {
      title: 'Parley',
      version: '1.0.0',
      description:
        'Chat backend: users, conversations, messages, sync and receipts. JSON in camelCase; unknown request fields are refused, unknown response fields must be tolerated.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    tags: [...new Set(operationList.map((op) => op.tag)), 'Health', ...(sent ? ['Webhook events'] : [])].map(
      (name) => ({ name }),
    ),
    paths: {
      ...paths,
      ...health('/healthz', 'Is the process up', { 200: 'It is' }),
      ...health('/readyz', 'Can it serve', {
        200: 'It can',
        503: 'The store is out of reach or not current',
      }),
    },
    ...(sent ? { webhooks: sent } : {}),
    components: {
      schemas: Object.fromEntries(Object.entries(schemas).sort(([a], [b]) => (a < b ? -1 : 1))),
      responses,
      securitySchemes,
      headers,
      parameters,
      examples: Object.fromEntries(
        errorCodes.filter((code) => errorRow(code).http !== null).map((code) => [code, errorExample(code)]),
      ),
    },
  };
}
