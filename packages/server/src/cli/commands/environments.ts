import { featureNames, planNames } from '@parley/protocol';
import { onlyOrganization } from '../../features/tenancy/access.ts';
import type { Command } from '../command.ts';
import { all, environmentId, given, inEnvironment, run } from '../operation.ts';

const plan = { name: 'plan', value: 'plan', values: planNames, text: 'what the environment may use' };
const bool = ['true', 'false'];

export const environmentCommands: readonly Command[] = [
  {
    name: 'env list',
    summary: 'Lists the environments',
    columns: ['id', 'name', 'kind', 'plan', 'status', 'local', 'createdAt'],
    needs: 'store',
    run: ({ ctx }) => all((cursor) => run('environments.list', ctx, { limit: '200', cursor })),
  },
  {
    name: 'env create',
    summary: 'Creates an environment and shows its secret key once',
    flags: [
      { name: 'name', value: 'name', required: true, text: 'its name' },
      {
        name: 'kind',
        value: 'kind',
        values: ['production', 'development'],
        required: true,
        text: 'a development environment may take unsigned tokens',
      },
      { name: 'id', value: 'env id', text: 'its id; chosen by the service if it is not given' },
      plan,
      { name: 'organization', value: 'org id', text: 'its organization; needed if there are several' },
    ],
    needs: 'store',
    run: async ({ ctx, flags: { id, name, kind, plan: wanted, organization } }) =>
      run('environments.create', ctx, {
        id,
        name,
        kind,
        plan: wanted,
        organizationId: organization ?? (await onlyOrganization(ctx.db)),
      }),
  },
  {
    name: 'env set',
    summary: 'Changes an environment',
    args: [environmentId],
    flags: [
      { name: 'name', value: 'name', text: 'its name' },
      {
        name: 'status',
        value: 'status',
        values: ['active', 'suspended'],
        text: 'a suspended environment answers 403',
      },
      plan,
      {
        name: 'creation',
        value: 'who',
        values: ['all', 'direct', 'none'],
        text: 'which conversations clients may create',
      },
      { name: 'dev-tokens', value: 'bool', values: bool, text: 'whether unsigned tokens are accepted' },
      {
        name: 'push',
        value: 'mode',
        values: ['providers', 'webhook', 'off'],
        text: 'how notifications are sent',
      },
      {
        name: 'push-content',
        value: 'what',
        values: ['full', 'name', 'none'],
        text: 'how much of a message a notification shows',
      },
      {
        name: 'owners-set-roles',
        value: 'bool',
        values: bool,
        text: 'whether owners may appoint moderators',
      },
      {
        name: 'default-level',
        value: 'level',
        values: ['all', 'mentions'],
        text: 'which messages are pushed to members who have not chosen a level',
      },
      {
        name: 'features-off',
        value: 'names',
        text: `features that are off, of ${featureNames.join(', ')}, with commas, or none`,
      },
      {
        name: 'local',
        value: 'bool',
        values: bool,
        text: 'true: unsigned tokens work from this machine only',
      },
    ],
    needs: 'store',
    run: ({ ctx, args, flags: { name, status, plan: wanted, local, 'features-off': off, ...flags } }) => {
      const settings = given({
        clientConversationCreation: flags['creation'],
        devTokens: flags['dev-tokens'],
        pushMode: flags['push'],
        pushContent: flags['push-content'],
        defaultLevel: flags['default-level'],
        ownersSetRoles: flags['owners-set-roles'],
        disabledFeatures:
          off === undefined
            ? undefined
            : String(off)
                .split(',')
                .filter((one) => one !== 'none'),
      });
      return run('environments.update', ctx, {
        environmentId: args['env id'],
        name,
        status,
        plan: wanted,
        local,
        settings: Object.keys(settings).length > 0 ? settings : undefined,
      });
    },
  },
  {
    name: 'key list',
    summary: 'Lists the secret keys of an environment, without their secrets',
    args: [environmentId],
    needs: 'store',
    run: async (line) => {
      const ctx = await inEnvironment(line);
      return all((cursor) => run('keys.list', ctx, { limit: '200', cursor }));
    },
  },
  {
    name: 'key create',
    summary: 'Creates a secret key and shows it once',
    args: [environmentId],
    flags: [{ name: 'name', value: 'name', text: 'its name, for example the server that uses it' }],
    needs: 'store',
    run: async (line) => run('keys.create', await inEnvironment(line), { name: line.flags['name'] }),
  },
  {
    name: 'key revoke',
    summary: 'Revokes a secret key; tokens that it signed end with it',
    args: [environmentId, { name: 'key id', text: 'the part of the key between the underscores' }],
    needs: 'store',
    run: async (line) => {
      const keyId = line.args['key id'];
      await run('keys.revoke', await inEnvironment(line), { keyId });
      return { revoked: keyId };
    },
  },
  {
    name: 'token',
    summary: 'Signs a token for a user',
    args: [environmentId, { name: 'user id', text: 'the user' }],
    flags: [{ name: 'expires-in', value: 'seconds', text: 'how long it is valid' }],
    needs: 'store',
    run: async (line) =>
      run('tokens.create', await inEnvironment(line), {
        userId: line.args['user id'],
        expiresIn: line.flags['expires-in'],
      }),
  },
];
