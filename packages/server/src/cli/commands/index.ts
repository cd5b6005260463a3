import type { Command } from '../command.ts';
import { doctorCommand } from './doctor.ts';
import { environmentCommands } from './environments.ts';
import { masterKeyCommands } from './master-key.ts';
import { operatorCommands } from './operators.ts';
import { serviceCommands } from './service.ts';

/** In the order of the help. */
export const commandList: readonly Command[] = [
  ...serviceCommands,
  doctorCommand,
  ...masterKeyCommands,
  ...environmentCommands,
  ...operatorCommands,
];
