import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'

import { reviseDraft } from '@/api/drafts'
import { toProblem } from '@/api/problem'
import type { JsonSchema } from '@/lib/defaults'
import { dismissToast, toastFailure } from '@/lib/toasts'
import { pruned, type Tree, withValue } from '@/lib/tree'

import type { FormField } from './fields'
import { named } from './form'
import { type Draft, forgetDraft, keepDraft } from './store'

type Dropped = Record<string, unknown>

/** The draft, kept for this tab, and the ways to change it. */
export function useDraft(from: string | undefined, beginning: Draft, specification: JsonSchema) {
  const [draft, setDraft] = useState(beginning)
  const [dropped, setDropped] = useState<Dropped>({})
  const keep = (changed: Draft) => {
    const next = { ...changed, spec: named(specification, pruned(changed.spec)) }
    keepDraft(from, next, window.sessionStorage)
    setDraft(next)
  }
  const revision = useMutation({
    mutationFn: reviseDraft,
    onError: (failure) => {
      toastFailure('Change', toProblem(failure))
    },
    onSuccess: (revised) => {
      dismissToast('Change')
      setDropped(revised.dropped)
      keep({ ...draft, spec: revised.spec })
    },
  })

  return {
    draft,
    /** The values that the last change took away without being asked to. */
    dropped,
    changing: revision.isPending,
    /** One value, which takes the place of those that it excludes. */
    set: (field: FormField, value: unknown) => {
      const beside = value === undefined ? [] : field.excludes
      const spec = beside.reduce(
        (tree, name) => withValue(tree, [...field.path.slice(0, -1), name], undefined),
        withValue(draft.spec, field.path, value),
      )
      setDropped({})
      keep({ ...draft, spec })
    },
    /** What others follow from is changed by the server, which knows its rules. */
    choose: (field: FormField, value: string) => {
      revision.mutate({ spec: draft.spec, change: withValue({}, field.path, value === '' ? null : value) })
    },
    preset: (name: string) => {
      revision.mutate({ spec: draft.spec, preset: name })
    },
    replace: (spec: Tree) => {
      setDropped({})
      keep({ ...draft, spec })
    },
    assume: (more: Omit<Draft, 'spec'>) => {
      keep({ ...draft, ...more })
    },
    forget: () => {
      forgetDraft(from, window.sessionStorage)
    },
  }
}

export type Editing = ReturnType<typeof useDraft>
