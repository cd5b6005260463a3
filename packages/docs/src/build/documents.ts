import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';

/** The parts of OpenAPI 3.1 and AsyncAPI 3 that our generator writes and the site shows. */
export interface Schema {
  $ref?: string;
  type?: string | string[];
  const?: unknown;
  enum?: unknown[];
  anyOf?: Schema[];
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  not?: unknown;
  description?: string;
  default?: unknown;
  format?: string;
  pattern?: string;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  maxItems?: number;
}
export interface Parameter {
  $ref?: string;
  name: string;
  in: string;
  required?: boolean;
  description?: string;
  schema: Schema;
}
interface Content {
  'application/json': { schema: Schema; example?: unknown };
  'application/jsonl'?: { schema: { 'x-line': Schema } };
}
export interface ApiResponse {
  $ref?: string;
  description: string;
  content?: Partial<Content>;
  'x-error-codes'?: string[];
}
export interface ApiOperation {
  operationId: string;
  summary: string;
  description?: string;
  tags: string[];
  deprecated?: boolean;
  'x-callers'?: string[];
  parameters?: Parameter[];
  requestBody?: { content: Content };
  responses: Record<string, ApiResponse>;
}
export interface OpenApi {
  info: { title: string; version: string; description: string };
  tags: { name: string }[];
  paths: Record<string, Record<string, ApiOperation>>;
  webhooks?: Record<string, Record<string, ApiOperation>>;
  components: {
    schemas: Record<string, Schema>;
    parameters: Record<string, Parameter>;
    responses: Record<string, ApiResponse>;
    examples?: Record<string, { value: unknown }>;
  };
}
export interface AsyncApi {
  info: { description: string };
  components: {
    messages: Record<
      string,
      { name: string; summary: string; payload: Schema; examples: { payload: unknown }[] }
    >;
    schemas: Record<string, Schema>;
  };
}

const resolve = createRequire(import.meta.url).resolve;
const read = async <T>(name: string): Promise<T> =>
  JSON.parse(await readFile(resolve(`@parley/protocol/generated/${name}`), 'utf8')) as T;
export const readOpenApi = (): Promise<OpenApi> => read('openapi.json');
export const readAsyncApi = (): Promise<AsyncApi> => read('asyncapi.json');
