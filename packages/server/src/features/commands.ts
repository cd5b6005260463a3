import type { Readable } from 'node:stream';
import type { Input, OperationName, Operations, Output } from '@parley/protocol';
import * as operator from './accounts/operations/operator.ts';
import * as audit from './audit/operations.ts';
import type { ControlContext, EnvironmentContext, Reply } from './context.ts';
import * as push from './push/operations.ts';
import * as slots from './storage/slot-operations.ts';
import * as tenancy from './tenancy/operations.ts';

/** The operations that the operator may call. They need no running service. */
export type CommandName = {
  [N in OperationName]: 'operator' extends Operations[N]['callers'][number] ? N : never;
}[OperationName];

export type CommandContext<N extends OperationName> = Operations[N]['scope'] extends 'environment'
  ? EnvironmentContext
  : ControlContext;
export type Handler<C, N extends OperationName> = (
  ctx: C,
  input: Input<N>,
) => Promise<Output<N> | Reply<Output<N>> | Reply<null> | Reply<Readable> | void>;

/** A table of its own, because the command line loads it at every run, and the others (handlers.ts) only the service needs. */
export const commands = {
  'tokens.create': tenancy.createToken,
  'push.listCredentials': push.listCredentials,
  'push.setCredentials': push.setCredentials,
  'push.removeCredentials': push.removeCredentials,
  'environments.list': tenancy.listEnvironments,
  'environments.create': tenancy.createEnvironment,
  'environments.update': tenancy.updateEnvironment,
  'keys.list': tenancy.listKeys,
  'keys.create': tenancy.createKey,
  'keys.revoke': tenancy.revokeKey,
  'audit.list': audit.list,
  'accounts.reset': operator.reset,
  'accounts.endSessions': operator.endSessions,
  'accounts.removeSecondFactor': operator.removeSecondFactor,
  'storage.listSlots': slots.list,
  'storage.setAside': slots.setAside,
  'storage.takeBack': slots.takeBack,
} satisfies { [N in CommandName]: Handler<CommandContext<N>, N> };
