import { flatten } from '@/lib/tree'

interface Change {
  path: string
  before: string | undefined
  after: string | undefined
}

/** The differences between two specifications with defaults filled in. */
export function changesBetween(before: object, after: object): Change[] {
  const old = new Map(flatten(before))
  const next = new Map(flatten(after))
  return [...new Set([...old.keys(), ...next.keys()])]
    .map((path) => ({ path, before: old.get(path), after: next.get(path) }))
    .filter((change) => change.before !== change.after)
}
