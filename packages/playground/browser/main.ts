import { createClient } from '@parley/client';
import { indexedDbStorage } from '@parley/client/indexed-db';
import type { Client } from '@parley/client';
import { createCalls } from '@parley/client/calls';
import { callButtons, showCalls } from './call-view.ts';
import { byId } from './dom.ts';
import { showList } from './list-view.ts';
import { developmentToken, forgetName, rememberedName, rememberName, userIdOf } from './sign-in.ts';
import { openTalk } from './talk-view.ts';
import type { Talk } from './talk-view.ts';

const environment = document.body.dataset['environment']!;
const states: Record<string, string> = {
  idle: 'not connected',
  reconnecting: 'connecting…',
  connected: 'connected',
  failed: 'connection failed',
};

byId<HTMLFormElement>('sign-in').onsubmit = (event) => {
  event.preventDefault();
  const userId = userIdOf(byId<HTMLInputElement>('name').value);
  if (userId === null) {
    byId('sign-in-problem').textContent = 'Use letters, digits, and _ - @ . :';
    return;
  }
  rememberName(userId);
  start(userId);
};
const remembered = rememberedName();
if (remembered) start(remembered);

function start(me: string): void {
  byId('welcome').hidden = true;
  byId('app').hidden = false;
  byId('me').textContent = me;
  const client = createClient({
    url: location.origin,
    env: environment,
    token: () => developmentToken(me),
    storage: indexedDbStorage('parley-playground'),
    sdk: 'playground/0.1.0',
  });
  showState(client);

  let talk: Talk | null = null;
  const calls = createCalls(client);
  const open = (id: string): void => {
    if (talk?.id === id) return;
    talk?.close();
    byId('talk').hidden = false;
    byId('nothing').hidden = true;
    byId('app').classList.add('open');
    talk = openTalk(client, me, id, close, calls);
    refresh();
  };
  const close = (): void => {
    talk?.close();
    talk = null;
    byId('talk').hidden = true;
    byId('nothing').hidden = false;
    byId('app').classList.remove('open');
    refresh();
  };
  const refresh = showList(client, me, open, () => talk?.id ?? null);
  byId('back').onclick = close;
  byId('sign-out').onclick = () => {
    forgetName();
    client.disconnect();
    location.reload();
  };
  byId<HTMLFormElement>('new-conversation').onsubmit = (event) => {
    event.preventDefault();
    void create(client, event.target as HTMLFormElement, me, open);
  };
  client.connect().then(
    () => {
      callButtons(
        showCalls(calls, () => talk?.callsChanged()),
        () => talk?.id ?? null,
      );
    },
    () => undefined,
  );
}

function showState(client: Client): void {
  const render = (): void => {
    const state = client.stateStore.get();
    const label = byId('state');
    label.textContent = states[state] ?? state;
    label.dataset['state'] = state;
  };
  client.stateStore.subscribe(render);
  render();
}

async function create(
  client: Client,
  form: HTMLFormElement,
  me: string,
  open: (id: string) => void,
): Promise<void> {
  const input = form.elements.namedItem('people') as HTMLInputElement;
  const problem = byId('new-problem');
  const names = input.value
    .split(',')
    .map((n) => n.trim())
    .filter(Boolean);
  const people = names.map(userIdOf).filter((id): id is string => id !== null && id !== me);
  problem.textContent = '';
  if (people.length === 0) return;
  try {
    const made =
      people.length === 1
        ? await client.conversations.createDirect(people[0]!)
        : await client.conversations.createGroup(people, { name: [me, ...people].join(', ').slice(0, 200) });
    input.value = '';
    open(made.id);
    made.close(); // The view has opened it for itself.
  } catch (error) {
    problem.textContent =
      (error as { code?: string }).code === 'not_found'
        ? `Not everybody is here yet: open this page under the name ${people.join(' and ')} first.`
        : (error as Error).message;
  }
}
