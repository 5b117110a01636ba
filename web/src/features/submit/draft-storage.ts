import { isTable } from '@/lib/toml'
import type { Tree } from '@/lib/tree'

/** A specification that is not submitted yet. */
export interface Draft {
  spec: Tree
  project?: string | undefined
  /** Examples per participant, which only the plan needs. */
  examples?: number | undefined
}

function place(from: string | undefined): string {
  return `ferret-draft-${from ?? 'new'}`
}

/** The draft that this tab has kept, which a reload does not lose. */
export function keptDraft(from: string | undefined, storage: Storage): Draft | undefined {
  try {
    const kept: unknown = JSON.parse(storage.getItem(place(from)) ?? 'null')
    return isTable(kept) && isTable(kept.spec) ? (kept as unknown as Draft) : undefined
  } catch {
    return undefined
  }
}

export function keepDraft(from: string | undefined, draft: Draft, storage: Storage): void {
  storage.setItem(place(from), JSON.stringify(draft))
}

export function forgetDraft(from: string | undefined, storage: Storage): void {
  storage.removeItem(place(from))
}
