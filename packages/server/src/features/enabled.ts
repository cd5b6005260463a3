import { ApiError } from '@parley/protocol';
import type { FeatureName } from '@parley/protocol';
import type { Environment } from './context.ts';

/** Refuses what belongs to a feature that is off in the environment (identity#features). */
export function requireFeature({ settings }: Environment, feature: FeatureName): void {
  if (settings.disabledFeatures.includes(feature))
    throw new ApiError('feature_disabled', {
      message: `The feature ${feature} is off in this environment.`,
      details: { feature },
    });
}
