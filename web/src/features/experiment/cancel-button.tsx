import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useRef } from 'react'

import { toProblem } from '@/api/problem'
import { cancelExperiment, experimentQuery } from '@/api/queries'
import { ProblemNotice } from '@/lib/ui/problem-notice'

export function CancelButton({ id, name }: { id: string; name: string }) {
  const dialog = useRef<HTMLDialogElement>(null)
  const queryClient = useQueryClient()
  const cancel = useMutation({
    mutationFn: () => cancelExperiment(id),
    onSuccess: (experiment) => {
      queryClient.setQueryData(experimentQuery(id).queryKey, experiment)
      dialog.current?.close()
    },
  })

  return (
    <>
      <button type="button" className="button" onClick={() => dialog.current?.showModal()}>
        Cancel experiment
      </button>
      <dialog ref={dialog} aria-labelledby="cancel-title">
        <h2 id="cancel-title">Cancel “{name}”?</h2>
        <p>
          The open round ends without a result and no further round starts. Committed rounds and their checkpoints stay.
          This cannot be undone.
        </p>
        {cancel.isError && <ProblemNotice problem={toProblem(cancel.error)} />}
        <div className="dialog-actions">
          <button type="button" className="button" autoFocus onClick={() => dialog.current?.close()}>
            Keep it running
          </button>
          <button
            type="button"
            className="button danger"
            disabled={cancel.isPending}
            onClick={() => {
              cancel.mutate()
            }}
          >
            Cancel experiment
          </button>
        </div>
      </dialog>
    </>
  )
}
