import { operationList, permissions, webhookEventNames } from '../index.ts';
import type { Operation } from '../index.ts';

type Properties = Record<string, { 'x-order'?: 'ascending' | 'descending' }>;

const pageKind = (op: Operation): 'cursor' | 'ascending' | 'descending' | null => {
  const properties = (op.response as { properties?: Properties } | null)?.properties ?? {};
  if (!('data' in properties)) return null;
  if ('nextCursor' in properties) return 'cursor';
  return properties['data']!['x-order'] ?? null;
};

const head = "// Generated from the protocol's operation table by `npm run generate`; do not edit.\n";

const fields = (op: Operation) => ({
  method: op.method,
  path: op.path,
  params: [...op.path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]),
  query: Object.keys(op.query.properties),
  body: op.body !== null,
});

const table = (operations: readonly Operation[], route: (op: Operation) => object): string => {
  const rows = operations.map((op) => `  ${JSON.stringify(op.name)}: ${JSON.stringify(route(op))},`);
  return `export const routes = {\n${rows.join('\n')}\n} as const;\n`;
};

/** What the server SDK needs of the table at run time, so that it depends on none of our packages. */
export const sdkRoutes = (): string =>
  head +
  table(
    operationList.filter((op) => op.callers.includes('server')),
    (op) => ({ ...fields(op), statuses: op.statuses, page: pageKind(op) }),
  );

/**
 * What the dashboard's pages need of the table, without schemas: also the lowest role that may call an operation, so
 * that they can leave out what would be refused.
 */
export const dashboardRoutes = (): string =>
  head +
  table(
    operationList.filter((op) => op.callers.some((caller) => caller === 'dashboard' || caller === 'anyone')),
    (op) => ({
      ...fields(op),
      key: op.callers.includes('server'),
      role: op.permission === null ? null : permissions[op.permission],
    }),
  ) +
  `\nexport const webhookEventNames = ${JSON.stringify(webhookEventNames)} as const;\n`;
