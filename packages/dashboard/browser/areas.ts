import { lazy } from 'react';
import type { ComponentType, LazyExoticComponent } from 'react';

/** The menu and the addresses: adding an area is one entry here and its file in pages/. */
export interface Area {
  /** After the environment's id, or after /dashboard. */
  path: string;
  title: string;
  /** Concerns no environment. */
  everywhere: boolean;
  /** Heading of the menu under which it stands; null: it is not in the menu. */
  group: string | null;
  page: LazyExoticComponent<ComponentType>;
}

type Load = () => Promise<{ default: ComponentType }>;
const area = (group: string, path: string, title: string, load: Load): Area => ({
  group,
  path,
  title,
  everywhere: false,
  page: lazy(load),
});

export const areas: readonly Area[] = [
  {
    path: '/account',
    title: 'Your account',
    everywhere: true,
    group: null,
    page: lazy(() => import('./pages/account.tsx')),
  },
  area('', '', 'Overview', () => import('./pages/overview.tsx')),
  area('Explore', '/users', 'Users', () => import('./pages/users.tsx')),
  area('Explore', '/conversations', 'Conversations', () => import('./pages/conversations.tsx')),
  area('Explore', '/live', 'Live', () => import('./pages/live.tsx')),
  area('Explore', '/trace', 'Trace', () => import('./pages/trace.tsx')),
  area('Explore', '/delivery', 'Did it arrive?', () => import('./pages/delivery.tsx')),
  area('Explore', '/logs', 'Logs', () => import('./pages/logs.tsx')),
  area('Explore', '/calls', 'Calls', () => import('./pages/calls.tsx')),
  area('Explore', '/analytics', 'Analytics', () => import('./pages/analytics.tsx')),
  area('Connect', '/webhooks', 'Webhooks', () => import('./pages/webhooks.tsx')),
  area('Connect', '/push', 'Push', () => import('./pages/push.tsx')),
  area('Connect', '/storage', 'Storage', () => import('./pages/storage.tsx')),
  area('Connect', '/keys', 'Secret keys', () => import('./pages/keys.tsx')),
  area('Manage', '/usage', 'Usage and plan', () => import('./pages/usage.tsx')),
  area('Manage', '/audit', 'Audit', () => import('./pages/audit.tsx')),
  area('Manage', '/team', 'Team', () => import('./pages/team.tsx')),
  area('Manage', '/settings', 'Settings', () => import('./pages/settings.tsx')),
];
