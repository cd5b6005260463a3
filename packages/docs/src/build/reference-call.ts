import type { ApiOperation, ApiResponse, OpenApi, Parameter, Schema } from './documents.ts';

/** An operation of the generated document, with what it refers to in place. */
export interface Call {
  method: string;
  path: string;
  op: ApiOperation;
  parameters: Parameter[];
  body: { schema: Schema; example?: unknown } | undefined;
  responses: [status: string, response: ApiResponse][];
}

const last = (ref: string): string => ref.split('/').at(-1) ?? '';

function callOf({ components }: OpenApi, method: string, path: string, op: ApiOperation): Call {
  return {
    method,
    path,
    op,
    parameters: (op.parameters ?? []).map((one) =>
      one.$ref === undefined ? one : (components.parameters[last(one.$ref)] ?? one),
    ),
    body: op.requestBody?.content['application/json'],
    responses: Object.entries(op.responses).map(([status, one]) => [
      status,
      one.$ref === undefined ? one : (components.responses[last(one.$ref)] ?? one),
    ]),
  };
}

/** Every operation, in the order of the document. */
export const callsOf = (api: OpenApi): Call[] =>
  Object.entries(api.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([verb, op]) => callOf(api, verb.toUpperCase(), path, op)),
  );

export const webhooksOf = (api: OpenApi): Call[] =>
  Object.entries(api.webhooks ?? {}).map(([type, item]) => callOf(api, 'POST', type, item['post']!));
