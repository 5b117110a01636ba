import { useMutation } from '@tanstack/react-query'
import { useRef, useState } from 'react'

import { reviseDraft } from '@/api/drafts'
import { toProblem } from '@/api/problem'
import type { JsonSchema } from '@/lib/defaults'
import { isTable } from '@/lib/toml'
import { pruned, type Tree, withValue } from '@/lib/tree'
import { dismissToast, toastFailure } from '@/lib/ui/toasts'

import type { FormField } from './fields'
import { named } from './form'

type Dropped = Record<string, unknown>
type Edit = (spec: Tree) => Tree

/** The draft, which the tab keeps, and the functions that change it. */
export function useDraft(name: string | undefined, beginning: Draft, specification: JsonSchema) {
  const [draft, setDraft] = useState(beginning)
  const [dropped, setDropped] = useState<Dropped>({})
  const latest = useRef(beginning)
  /** Edits made while the server revised the draft, which are applied again to its answer. */
  const meanwhile = useRef<Edit[]>([])
  const keep = (changed: Draft) => {
    const next = { ...changed, spec: named(specification, pruned(changed.spec)) }
    latest.current = next
    keepDraft(name, next, window.sessionStorage)
    setDraft(next)
  }
  const edit = (change: Edit) => {
    meanwhile.current.push(change)
    setDropped({})
    keep({ ...latest.current, spec: change(latest.current.spec) })
  }
  const revision = useMutation({
    scope: { id: 'draft' }, // a second choice is made in what the first has led to
    mutationFn: (wanted: Omit<Parameters<typeof reviseDraft>[0], 'spec'>) => {
      meanwhile.current = []
      return reviseDraft({ spec: latest.current.spec, ...wanted })
    },
    onError: (failure) => {
      toastFailure('Change', toProblem(failure))
    },
    onSuccess: (revised) => {
      dismissToast('Change')
      setDropped(revised.dropped)
      keep({ ...latest.current, spec: meanwhile.current.reduce((spec, change) => change(spec), revised.spec) })
    },
  })

  return {
    draft,
    /** The values that the last change removed as a side effect. */
    dropped,
    changing: revision.isPending,
    /** Sets one value and removes the values that it excludes. */
    set: (field: FormField, value: unknown) => {
      const beside = value === undefined ? [] : field.excludes
      edit((spec) =>
        beside.reduce(
          (tree, name) => withValue(tree, [...field.path.slice(0, -1), name], undefined),
          withValue(spec, field.path, value),
        ),
      )
    },
    /** The server changes a value on which others depend, because it has the rules. */
    choose: (field: FormField, value: string) => {
      revision.mutate({ change: withValue({}, field.path, value === '' ? null : value) })
    },
    preset: (name: string) => {
      revision.mutate({ preset: name })
    },
    replace: (spec: Tree) => {
      edit(() => spec)
    },
    assume: (more: Omit<Draft, 'spec'>) => {
      keep({ ...latest.current, ...more })
    },
    forget: () => {
      forgetDraft(name, window.sessionStorage)
    },
  }
}

export type Editing = ReturnType<typeof useDraft>

/** A specification that is not submitted yet. */
export interface Draft {
  spec: Tree
  project?: string | undefined
  /** Examples per participant, which only the plan needs. */
  examples?: number | undefined
}

function place(name: string | undefined): string {
  return `ferret-draft-${name ?? 'new'}`
}

/** The draft that this tab has kept, which a reload does not lose. */
export function keptDraft(name: string | undefined, storage: Storage): Draft | undefined {
  try {
    const kept: unknown = JSON.parse(storage.getItem(place(name)) ?? 'null')
    return isTable(kept) && isTable(kept.spec) ? (kept as unknown as Draft) : undefined
  } catch {
    return undefined
  }
}

export function keepDraft(name: string | undefined, draft: Draft, storage: Storage): void {
  storage.setItem(place(name), JSON.stringify(draft))
}

export function forgetDraft(name: string | undefined, storage: Storage): void {
  storage.removeItem(place(name))
}
