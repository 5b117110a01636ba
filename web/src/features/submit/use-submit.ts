import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useRef } from 'react'

import { cloneExperiment, planQuery, randomKey, submitExperiment } from '@/api/drafts'
import { toProblem } from '@/api/problem'
import { experimentQuery } from '@/api/queries'
import type { Draft as Asked } from '@/api/types'
import { dismissToast, toastFailure } from '@/lib/ui/toasts'

const ACTION = 'Submit'

/**
 * Submits the draft if the server accepts it, and opens the new experiment. The same draft is sent under the same key,
 * so that a lost answer creates no second experiment.
 */
export function useSubmit(asked: Asked, project: string | undefined, onDone: () => void) {
  const queryClient = useQueryClient()
  const navigate = useNavigate()
  const sent = useRef({ body: '', key: '' })

  const keyOf = (body: string) => {
    if (sent.current.body !== body) sent.current = { body, key: randomKey() }
    return sent.current.key
  }

  return useMutation({
    mutationFn: async () => {
      const { problem, change } = await queryClient.query({ ...planQuery(asked, project), staleTime: 0 })
      if (problem !== null) return undefined
      const key = keyOf(JSON.stringify([asked.spec, asked.original, project]))
      return asked.original && change !== null
        ? cloneExperiment(asked.original, change, key, project)
        : submitExperiment(asked.spec, key, project)
    },
    onError: (failure) => {
      toastFailure(ACTION, toProblem(failure))
    },
    onSuccess: async (made) => {
      dismissToast(ACTION)
      if (made === undefined) return
      onDone()
      queryClient.setQueryData(experimentQuery(made.id).queryKey, made)
      void queryClient.invalidateQueries({ queryKey: ['experiments'] })
      await navigate({ to: '/experiments/$id', params: { id: made.id } })
    },
  })
}
