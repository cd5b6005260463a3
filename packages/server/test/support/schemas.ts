import { Ajv2020 } from 'ajv/dist/2020.js';

/** For what the service answers and sends. That our schemas are valid is shown once, in core/schemas.test.ts. */
export const ajv = new Ajv2020({ strict: false, validateFormats: false, meta: false, validateSchema: false });
