import AnalyticsIcon from 'lucide-react/icons/chart-no-axes-column';
import AuditIcon from 'lucide-react/icons/shield-check';
import CallsIcon from 'lucide-react/icons/phone';
import ConversationsIcon from 'lucide-react/icons/messages-square';
import DeliveryIcon from 'lucide-react/icons/mail-question-mark';
import HouseIcon from 'lucide-react/icons/house';
import KeysIcon from 'lucide-react/icons/key-round';
import LiveIcon from 'lucide-react/icons/radio';
import LogsIcon from 'lucide-react/icons/scroll-text';
import ModerationIcon from 'lucide-react/icons/flag';
import PersonIcon from 'lucide-react/icons/circle-user-round';
import PushIcon from 'lucide-react/icons/bell-ring';
import SettingsIcon from 'lucide-react/icons/sliders-horizontal';
import StorageIcon from 'lucide-react/icons/database';
import TeamIcon from 'lucide-react/icons/user-round-plus';
import TraceIcon from 'lucide-react/icons/route';
import UsageIcon from 'lucide-react/icons/gauge';
import UsersIcon from 'lucide-react/icons/users-round';
import WebhooksIcon from 'lucide-react/icons/webhook';
import type { LucideIcon } from 'lucide-react/types';
import { lazy } from 'react';
import type { ComponentType, LazyExoticComponent } from 'react';

/** The menu and the addresses: adding an area is one entry here and its file in pages/. */
export interface Area {
  /** After the environment's id, or after /dashboard. */
  path: string;
  title: string;
  icon: LucideIcon;
  /** Concerns no environment. */
  everywhere: boolean;
  /** Heading of the menu under which it stands; null: it is not in the menu. */
  group: string | null;
  page: LazyExoticComponent<ComponentType>;
  /** Fetches the page before it is shown. */
  load: () => Promise<unknown>;
}

type Load = () => Promise<{ default: ComponentType }>;

/** As `lazy`; a page that was fetched before is there at once, not a moment later. */
function later(load: Load): Pick<Area, 'page' | 'load'> {
  let module: Awaited<ReturnType<Load>> | undefined;
  const at = { then: (done: (value: typeof module) => void) => done(module) } as ReturnType<Load>;
  return {
    page: lazy(() => (module ? at : load())),
    load: async () => {
      module = await load();
    },
  };
}

const area = (group: string, path: string, title: string, icon: LucideIcon, load: Load): Area => ({
  group,
  path,
  title,
  icon,
  everywhere: false,
  ...later(load),
});

export const areas: readonly Area[] = [
  {
    path: '/account',
    title: 'Your account',
    icon: PersonIcon,
    everywhere: true,
    group: null,
    ...later(() => import('./pages/account.tsx')),
  },
  area('', '', 'Overview', HouseIcon, () => import('./pages/overview.tsx')),
  area('Explore', '/users', 'Users', UsersIcon, () => import('./pages/users.tsx')),
  area(
    'Explore',
    '/conversations',
    'Conversations',
    ConversationsIcon,
    () => import('./pages/conversations.tsx'),
  ),
  area('Explore', '/live', 'Live', LiveIcon, () => import('./pages/live.tsx')),
  area('Explore', '/trace', 'Trace', TraceIcon, () => import('./pages/trace.tsx')),
  area('Explore', '/delivery', 'Did it arrive?', DeliveryIcon, () => import('./pages/delivery.tsx')),
  area('Explore', '/logs', 'Logs', LogsIcon, () => import('./pages/logs.tsx')),
  area('Explore', '/calls', 'Calls', CallsIcon, () => import('./pages/calls.tsx')),
  area('Explore', '/moderation', 'Moderation', ModerationIcon, () => import('./pages/moderation.tsx')),
  area('Explore', '/analytics', 'Analytics', AnalyticsIcon, () => import('./pages/analytics.tsx')),
  area('Connect', '/webhooks', 'Webhooks', WebhooksIcon, () => import('./pages/webhooks.tsx')),
  area('Connect', '/push', 'Push', PushIcon, () => import('./pages/push.tsx')),
  area('Connect', '/storage', 'Storage', StorageIcon, () => import('./pages/storage.tsx')),
  area('Connect', '/keys', 'Secret keys', KeysIcon, () => import('./pages/keys.tsx')),
  area('Manage', '/usage', 'Usage and plan', UsageIcon, () => import('./pages/usage.tsx')),
  area('Manage', '/audit', 'Audit', AuditIcon, () => import('./pages/audit.tsx')),
  area('Manage', '/team', 'Team', TeamIcon, () => import('./pages/team.tsx')),
  area('Manage', '/settings', 'Settings', SettingsIcon, () => import('./pages/settings.tsx')),
];

/** The area at a location below /dashboard. */
export function areaOf(location: string, env: string | null): Area | undefined {
  const path = env === null ? location : location.slice(env.length + 1);
  return areas.find(({ path: own, everywhere }) =>
    own === ''
      ? env !== null && path === ''
      : (env === null) === everywhere && `${path}/`.startsWith(`${own}/`),
  );
}
