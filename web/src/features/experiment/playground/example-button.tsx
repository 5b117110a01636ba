import { useMutation, useQuery } from '@tanstack/react-query'

import { meQuery, onlyReads } from '@/api/account'
import { drawExample } from '@/api/playground'
import { toProblem } from '@/api/problem'
import type { HeldOutExample } from '@/api/types'
import { dismissToast, toastFailure } from '@/lib/ui/toasts'

const ACTION = 'Drawing an example'
const SEEDS = 2 ** 31

/** Draws a random held-out example, for users who may read the service's data. */
export function ExampleButton({ id, onDrawn }: { id: string; onDrawn: (example: HeldOutExample) => void }) {
  const { data: me } = useQuery(meQuery)
  const draw = useMutation({
    mutationFn: () => drawExample(id, Math.floor(Math.random() * SEEDS)),
    onError: (failure) => {
      toastFailure(ACTION, toProblem(failure))
    },
    onSuccess: (example) => {
      dismissToast(ACTION)
      onDrawn(example)
    },
  })
  if (onlyReads(me) !== false) return null
  return (
    <button
      type="button"
      className="button"
      disabled={draw.isPending}
      onClick={() => {
        draw.mutate()
      }}
    >
      {draw.isPending ? 'Drawing…' : 'Draw a held-out example'}
    </button>
  )
}
