import { ApiError, Type } from '@parley/protocol';
import type { Operation } from '@parley/protocol';
import { invalid } from '../platform/api-errors.ts';
import { coercingValidator, unstorableText, validator } from '../platform/validation.ts';

/**
 * Makes the input of an operation from a request or command: checks it by the operation's schemas, and puts path,
 * query and body fields into one object.
 */

/** For a REST request. */
export function requestReader(operation: Operation) {
  const params = coercingValidator(operation.params);
  const queryRules = coercingValidator(operation.query);
  const body = operation.body ? validator(operation.body) : null;

  return (paramValues: Record<string, unknown>, query: Record<string, unknown>, sent: unknown): unknown => {
    const given = sent === undefined && operation.bodyOptional ? {} : sent;
    const problem = params(paramValues) ?? queryRules(query) ?? bodyProblem(given);
    if (problem) throw problem;
    return storable({ ...paramValues, ...query, ...(operation.body ? (given as object) : {}) });
  };

  function bodyProblem(given: unknown): ApiError | null {
    if (body)
      return given === undefined
        ? new ApiError('invalid_request', { message: 'The request needs a JSON body.' })
        : body(given);
    const extra = typeof given === 'object' && given !== null ? Object.keys(given)[0] : undefined;
    return extra === undefined
      ? null
      : new ApiError('unknown_field', { param: extra, message: `Unknown field: ${extra}.` });
  }
}

/** For the command line, where values are text and a field is not assigned to path, query or body. */
export function readCommand(operation: Operation, fields: Record<string, unknown>): unknown {
  const { params, query, body } = operation;
  const schema = Type.Object(
    { ...params.properties, ...query.properties, ...body?.properties },
    { additionalProperties: false },
  );
  const problem = coercingValidator(schema)(fields);
  if (problem) throw problem;
  return storable(fields);
}

function storable<T>(input: T): T {
  const unstorable = unstorableText(input);
  if (unstorable !== null) throw invalid(unstorable, 'Text must be valid Unicode without NUL characters.');
  return input;
}
