import type { Experiment, Round } from '@/api/types'

/** "4 of 5, without hospital-e" for each secure sum of the round; with several, each after its name. */
export function sumText({ groups }: Pick<Round, 'groups'>): string {
  return groups
    .map(({ name, members, survivors, dropped, refused }) => {
      const without = dropped.length > 0 ? `, without ${dropped.join(', ')}` : ''
      const reason = refused === null ? '' : `, left out of the model: ${refused}`
      return `${groups.length > 1 ? `${name}: ` : ''}${survivors} of ${members}${without}${reason}`
    })
    .join('; ')
}

/** "each example", or "all examples with the same patient_id": the records that noise hides. */
export function protectedRecords(unit: string): string {
  return unit === 'example' ? 'each example' : `all examples with the same ${unit.replace('field:', '')}`
}

/** ε that the most exposed records have spent; unknown where the server cannot compute it. */
export function spentEpsilon({ round, metrics }: Pick<Experiment, 'round' | 'metrics'>): string {
  const spent = metrics.epsilon?.last
  return spent?.toPrecision(3) ?? (round === 0 ? 'nothing' : 'an unknown part')
}
