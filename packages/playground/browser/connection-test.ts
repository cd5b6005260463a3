import { createClient } from '@parley/client';
import { createCalls } from '@parley/client/calls';
import type { Route, RouteResult } from '@parley/client/calls';
import { byId, make } from './dom.ts';
import { developmentToken, rememberedName } from './sign-in.ts';

/** Which of UDP, TCP and TURN work from here, and what to do about one that does not. */

const routes: Record<Route, { name: string; about: string }> = {
  udp: { name: 'UDP', about: 'straight to the media server, with the least delay' },
  tcp: { name: 'TCP', about: 'straight to the media server, where UDP is blocked' },
  turn: { name: 'TURN', about: 'over a relay, where the media server’s ports are blocked' },
};

type Problem = NonNullable<RouteResult['problem']>;

const unavailable = 'Look at “media” in /readyz, and at the log of the service.';
const help: Record<Route, Partial<Record<Problem, string>>> = {
  udp: {
    no_connection:
      'Open UDP from CHAT_MEDIA_PORT upward, one port per media worker, in the firewalls of the server and of this network. Behind NAT or in a container, set CHAT_MEDIA_ANNOUNCED_ADDRESS to the address that browsers reach.',
    no_media:
      'It connects, and nothing comes back: a firewall or VPN on this side probably drops long UDP packets. Try another network.',
  },
  tcp: {
    no_connection:
      'Open TCP on the same ports as UDP, from CHAT_MEDIA_PORT upward: calls fall back to it where UDP is blocked.',
    no_media: 'It connects, and nothing comes back: a proxy in between probably inspects the connection.',
  },
  turn: {
    not_configured:
      'The service names no TURN server. Networks that let only web traffic through have no calls without one: run coturn, and set CHAT_TURN_URLS and CHAT_TURN_SECRET (docs/calls.md).',
    no_connection:
      'The relay does not answer, or refuses: open its port, compare CHAT_TURN_SECRET with its static-auth-secret and both clocks, and let it reach the media server (allowed-peer-ip).',
    no_media: 'The relay answers, and nothing comes back: let it reach the media server’s ports.',
  },
};

const me = rememberedName() ?? `visitor-${Math.random().toString(36).slice(2, 8)}`;
const client = createClient({
  url: location.origin,
  env: document.body.dataset['environment']!,
  token: () => developmentToken(me),
  sdk: 'connection-test/0.1.0',
});
const calls = createCalls(client);

function row(route: Route): HTMLElement {
  const { name, about } = routes[route];
  const view = make(
    'li',
    {},
    make('strong', {}, name),
    ` ${about}`,
    make('p', { class: 'quiet' }, 'testing…'),
  );
  view.id = `route-${route}`;
  view.dataset['state'] = 'testing';
  return view;
}

function show({ route, works, ms, rttMs, problem, message }: RouteResult): void {
  const view = byId(`route-${route}`);
  view.dataset['state'] = works ? 'works' : (problem ?? 'fails');
  view.querySelector('p')!.textContent = works
    ? `works: pictures were back after ${ms} ms${rttMs === null ? '' : `, ${rttMs} ms there and back`}`
    : `${problem === 'not_configured' ? '' : 'does not work. '}${help[route][problem!] ?? unavailable}${message ? ` (${message})` : ''}`;
}

function verdict(results: readonly RouteResult[]): string {
  const works = (route: Route) => results.some((r) => r.route === route && r.works);
  if (works('udp')) return 'Calls work well from here.';
  if (works('tcp') || works('turn')) return 'Calls work from here, with more delay than over UDP.';
  return 'Calls do not work from here.';
}

async function run(): Promise<void> {
  const again = byId<HTMLButtonElement>('again');
  again.disabled = true;
  byId('verdict').textContent = '';
  byId('routes').replaceChildren(...(Object.keys(routes) as Route[]).map(row));
  try {
    await client.connect();
    byId('verdict').textContent = verdict(await calls.test(show));
  } catch (error) {
    byId('verdict').textContent = `The chat service cannot be reached: ${(error as Error).message}`;
  }
  again.disabled = false;
}

byId('again').onclick = () => void run();
void run();
