import { accountsOperations } from './accounts.ts';
import { analyticsOperations } from './analytics.ts';
import { blocksOperations } from './blocks.ts';
import { callsOperations } from './calls.ts';
import { conversationsOperations } from './conversations.ts';
import { environmentsOperations } from './environments.ts';
import { joiningOperations } from './joining.ts';
import { hooksOperations } from './hooks.ts';
import { logsOperations } from './logs.ts';
import { mentionsOperations } from './mentions.ts';
import { messagesOperations } from './messages.ts';
import { organizationsOperations } from './organizations.ts';
import { pinsOperations } from './pins.ts';
import { pushOperations } from './push.ts';
import { pollsOperations } from './polls.ts';
import { reactionsOperations } from './reactions.ts';
import { reportsOperations } from './reports.ts';
import { restrictionsOperations } from './restrictions.ts';
import { storageOperations } from './storage.ts';
import { uploadsOperations } from './uploads.ts';
import { usersOperations } from './users.ts';
import { webhooksOperations } from './webhooks.ts';
import { wordsOperations } from './words.ts';
import { httpCallers } from './define.ts';
import type { InputOf, Operation, OutputOf } from './define.ts';

/** Every operation, once. Bindings, documents and SDKs are derived from this table. */
export const operations = {
  ...usersOperations,
  ...conversationsOperations,
  ...messagesOperations,
  ...reactionsOperations,
  ...pinsOperations,
  ...pollsOperations,
  ...mentionsOperations,
  ...blocksOperations,
  ...restrictionsOperations,
  ...joiningOperations,
  ...wordsOperations,
  ...reportsOperations,
  ...webhooksOperations,
  ...hooksOperations,
  ...uploadsOperations,
  ...pushOperations,
  ...callsOperations,
  ...analyticsOperations,
  ...accountsOperations,
  ...organizationsOperations,
  ...environmentsOperations,
  ...storageOperations,
  ...logsOperations,
};

export type Operations = typeof operations;
export type OperationName = keyof Operations;
export type Input<N extends OperationName> = InputOf<Operations[N]>;
export type Output<N extends OperationName> = OutputOf<Operations[N]>;
/** Operations that can be called over HTTP. The others exist on the command line alone, and have no endpoint. */
export const operationList: readonly Operation[] = Object.values<Operation>(operations).filter(
  (op) => httpCallers(op).length > 0,
);

/** @param input the validated input. */
export const costOf = (name: OperationName, input: unknown): number =>
  (operations[name].cost as (input: unknown) => number)(input);
