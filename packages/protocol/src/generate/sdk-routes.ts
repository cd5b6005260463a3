import { operationList } from '../index.ts';
import type { Operation } from '../index.ts';

type Properties = Record<string, { 'x-order'?: 'ascending' | 'descending' }>;

const pageKind = (op: Operation): 'cursor' | 'ascending' | 'descending' | null => {
  const properties = (op.response as { properties?: Properties } | null)?.properties ?? {};
  if (!('data' in properties)) return null;
  if ('nextCursor' in properties) return 'cursor';
  return properties['data']!['x-order'] ?? null;
};

/** What the server SDK needs of the table at run time, so that it depends on no package of ours. */
export function sdkRoutes(): string {
  const rows = operationList
    .filter((op) => op.callers.includes('server'))
    .map((op) => {
      const route = {
        method: op.method,
        path: op.path,
        params: [...op.path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]),
        query: Object.keys(op.query.properties),
        body: op.body !== null,
        statuses: op.statuses,
        page: pageKind(op),
      };
      return `  ${JSON.stringify(op.name)}: ${JSON.stringify(route)},`;
    });
  return `// Generated from the protocol's operation table by \`npm run generate\`; do not edit.
export const routes = {
${rows.join('\n')}
} as const;
`;
}
