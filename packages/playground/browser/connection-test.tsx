import { useCallback, useEffect, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { createCalls } from '@parley/client/calls';
import type { Calls, Route, RouteResult } from '@parley/client/calls';
import type { Client } from '@parley/client';
import '@fontsource-variable/geist/wght.css';
import '@fontsource-variable/geist-mono/wght.css';
import './style.css';
import { Wordmark } from './icons.tsx';
import { rememberedUser } from './people.ts';
import { clientOf } from './session.ts';
import { startTheme } from './theme.ts';

/** Tests UDP, TCP and TURN from this browser, and suggests fixes. */

const routes: Record<Route, { name: string; about: string }> = {
  udp: { name: 'UDP', about: 'straight to the media server, with the least delay' },
  tcp: { name: 'TCP', about: 'straight to the media server, where UDP is blocked' },
  turn: { name: 'TURN', about: 'over a relay, where the media server’s ports are blocked' },
};
const order = Object.keys(routes) as Route[];

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

function verdictOf(results: readonly RouteResult[]): string {
  const works = (route: Route) => results.some((r) => r.route === route && r.works);
  if (works('udp')) return 'Calls work well from here.';
  if (works('tcp') || works('turn')) return 'Calls work from here, with more delay than over UDP.';
  return 'Calls do not work from here.';
}

const words: Record<string, string> = { testing: 'testing…', works: 'works', not_configured: 'not set up' };

function Row({ route, result }: { route: Route; result: RouteResult | undefined }) {
  const { name, about } = routes[route];
  const state = !result ? 'testing' : result.works ? 'works' : (result.problem ?? 'fails');
  return (
    <li id={`route-${route}`} data-state={state}>
      <i aria-hidden="true" />
      <h2>
        {name} <small>{words[state] ?? 'does not work'}</small>
      </h2>
      <p>{about}</p>
      {result ? <p className="demo-finding">{findingOf(result)}</p> : null}
    </li>
  );
}

function findingOf({ route, works, ms, rttMs, problem, message }: RouteResult): string {
  if (works)
    return `Pictures were back after ${ms} ms${rttMs === null ? '' : `, ${rttMs} ms there and back`}.`;
  return `${help[route][problem!] ?? unavailable}${message ? ` (${message})` : ''}`;
}

function ConnectionTest({ client, calls }: { client: Client; calls: Calls }) {
  const [results, setResults] = useState<readonly RouteResult[]>([]);
  const [verdict, setVerdict] = useState<string | null>(null);
  const [round, setRound] = useState(0);
  const run = useCallback(async (): Promise<string> => {
    try {
      await client.connect();
      return verdictOf(await calls.test((result) => setResults((all) => [...all, result])));
    } catch (error) {
      return `The chat service cannot be reached: ${(error as Error).message}`;
    }
  }, [client, calls]);
  useEffect(() => void run().then(setVerdict), [run, round]);
  return (
    <main className="demo-test">
      <Wordmark height={28} />
      <h1>{verdict ?? 'Can this browser make calls?'}</h1>
      <p>
        A small picture is sent to the media server and back, over every way that a call can take. No camera
        or microphone is opened, and nobody is called.
      </p>
      <p id="verdict" className="parley-hidden" role="status">
        {verdict}
      </p>
      <ol aria-label="Ways that a call can take">
        {order.map((route) => (
          <Row key={route} route={route} result={results.find((r) => r.route === route)} />
        ))}
      </ol>
      <button
        type="button"
        id="again"
        className="demo-button"
        data-kind="primary"
        disabled={verdict === null}
        onClick={() => {
          setResults([]);
          setVerdict(null);
          setRound(round + 1);
        }}
      >
        Test again
      </button>
      <p>
        <a href="/">Back to the demo</a>
      </p>
    </main>
  );
}

startTheme();
const client = clientOf(
  rememberedUser() ?? `visitor-${Math.random().toString(36).slice(2, 8)}`,
  'connection-test/0.1.0',
);
createRoot(document.getElementById('app')!).render(
  <ConnectionTest client={client} calls={createCalls(client)} />,
);
