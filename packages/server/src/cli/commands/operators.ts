import type { Argument, Command } from '../command.ts';
import { all, environmentId, inEnvironment, readJson, run } from '../operation.ts';
import type { Page } from '../operation.ts';

const provider = {
  name: 'provider',
  text: 'the push provider',
  values: ['fcm', 'apns', 'expo', 'webpush'],
} as const;
const email = { name: 'email', text: 'the e-mail address of the account' } as const;
const slot = { name: 'slot', text: 'the slot of the database', values: ['a', 'b'] } as const;

/** A command that changes what `about` names in an environment, and answers with that name as its field `done`. */
const changing = (
  name: string,
  summary: string,
  about: Argument,
  operation: 'push.removeCredentials' | 'storage.setAside' | 'storage.takeBack',
  done: string,
): Command => ({
  name,
  summary,
  args: [environmentId, about],
  needs: 'store',
  run: async (line) => {
    const named = line.args[about.name];
    await run(operation, await inEnvironment(line), { [about.name]: named });
    return { [done]: named };
  },
});

export const operatorCommands: readonly Command[] = [
  {
    name: 'push list',
    summary: 'Lists the push providers of an environment, without their credentials',
    args: [environmentId],
    needs: 'store',
    run: async (line) => ((await run('push.listCredentials', await inEnvironment(line), {})) as Page).data,
  },
  {
    name: 'push set',
    summary: 'Stores the credentials of a push provider',
    args: [environmentId, provider, { name: 'file', text: 'the credentials as JSON' }],
    needs: 'store',
    run: async (line) => {
      const ctx = await inEnvironment(line);
      const credentials = await readJson(line.env, line.args['file']!);
      return run('push.setCredentials', ctx, { provider: line.args['provider'], credentials });
    },
  },
  changing(
    'push remove',
    'Removes the credentials of a push provider',
    provider,
    'push.removeCredentials',
    'removed',
  ),
  {
    name: 'account reset',
    summary: 'Creates a link to set a new password',
    args: [email],
    needs: 'store',
    run: ({ ctx, args }) => run('accounts.reset', ctx, { email: args['email'] }),
  },
  {
    name: 'account sign-out',
    summary: 'Ends all sessions of an account',
    args: [email],
    needs: 'store',
    run: async ({ ctx, args }) => {
      await run('accounts.endSessions', ctx, { email: args['email'] });
      return { signedOut: args['email'] };
    },
  },
  {
    name: 'account drop-second-factor',
    summary: 'Removes the one-time codes and passkeys of an account',
    args: [email],
    needs: 'store',
    run: async ({ ctx, args }) => {
      await run('accounts.removeSecondFactor', ctx, { email: args['email'] });
      return { dropped: args['email'] };
    },
  },
  {
    name: 'storage list',
    summary: 'Lists the slots of customers’ databases and their state',
    args: [{ ...environmentId, optional: true }],
    needs: 'store',
    run: async ({ ctx, args }) =>
      ((await run('storage.listSlots', ctx, { environmentId: args['env id'] })) as Page).data,
  },
  changing(
    'storage set-aside',
    'Stops connecting to this customer’s database',
    slot,
    'storage.setAside',
    'setAside',
  ),
  changing('storage retry', 'Uses this customer’s database again', slot, 'storage.takeBack', 'retried'),
  {
    name: 'audit list',
    summary: 'Lists changes with their authors, newest first',
    args: [{ ...environmentId, optional: true }],
    flags: [
      { name: 'action', value: 'operation', text: 'only this operation, such as keys.revoke' },
      { name: 'actor', value: 'name', text: 'only changes by this person or program' },
    ],
    columns: ['at', 'environmentId', 'actor', 'action', 'target', 'ip'],
    needs: 'store',
    run: ({ ctx, args, flags: { action, actor } }) =>
      all((cursor) =>
        run('audit.list', ctx, { limit: '200', cursor, environmentId: args['env id'], action, actor }),
      ),
  },
];
