import { flatten } from '@/lib/flatten'

const FREE = ['seed', 'name']

/** Those whose specifications are equal apart from seed and name, in the order in which they first come. */
export function seedGroups<T extends { spec: unknown }>(runs: readonly T[]): T[][] {
  const groups = new Map<string, T[]>()
  for (const run of runs) {
    const key = sameApartFromSeed(run.spec)
    groups.set(key, [...(groups.get(key) ?? []), run])
  }
  return [...groups.values()]
}

function sameApartFromSeed(spec: unknown): string {
  const fields = flatten(spec).filter(([path]) => !FREE.includes(path))
  return JSON.stringify(fields.sort(([a], [b]) => (a < b ? -1 : 1)))
}
