import { asyncapi } from './asyncapi.ts';
import { errorsPage } from './errors-page.ts';
import { openapi } from './openapi.ts';
import { dashboardRoutes, sdkRoutes } from './routes.ts';

const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;

/** Every generated file: its path from the root of the repository, and its text. */
export const outputs = (): Record<string, string> => ({
  'packages/protocol/generated/openapi.json': json(openapi()),
  'packages/protocol/generated/asyncapi.json': json(asyncapi()),
  'packages/protocol/generated/errors.md': errorsPage(),
  'packages/server-sdk/src/generated/routes.ts': sdkRoutes(),
  'packages/dashboard/browser/api/generated/routes.ts': dashboardRoutes(),
});
