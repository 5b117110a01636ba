import { useMutation } from '@tanstack/react-query'
import { useRef, useState } from 'react'
import { createPortal } from 'react-dom'

import { reviseDraft } from '@/api/drafts'
import { toProblem } from '@/api/problem'
import type { Tree } from '@/lib/tree'
import { Field } from '@/lib/ui/field'
import { ProblemNotice } from '@/lib/ui/notice'

/** Fills the form from TOML, pasted or from a file. */
export function ImportToml({ onRead }: { onRead: (spec: Tree) => void }) {
  const dialog = useRef<HTMLDialogElement>(null)
  const [text, setText] = useState('')
  const reading = useMutation({
    mutationFn: () => reviseDraft({ toml: text }),
    onSuccess: ({ spec }) => {
      onRead(spec)
      dialog.current?.close()
    },
  })
  const take = async (file: File | undefined) => {
    if (file !== undefined) setText(await file.text())
  }

  return (
    <>
      <button type="button" className="button" onClick={() => dialog.current?.showModal()}>
        Import TOML
      </button>
      {/* Outside of the form that it fills: forms do not nest. */}
      {createPortal(
        <dialog ref={dialog} aria-labelledby="import-toml">
          <form
            onSubmit={(event) => {
              event.preventDefault()
              event.stopPropagation()
              reading.mutate()
            }}
          >
            <h2 id="import-toml">Import a specification</h2>
            <Field label="TOML" hint="The imported specification replaces the values in the form.">
              <textarea
                rows={12}
                spellCheck={false}
                required
                value={text}
                onChange={(event) => {
                  setText(event.target.value)
                }}
              />
            </Field>
            <Field label="Or a file">
              <input type="file" accept=".toml,text/plain" onChange={(event) => void take(event.target.files?.[0])} />
            </Field>
            {reading.error && <ProblemNotice problem={toProblem(reading.error)} />}
            <div className="dialog-actions">
              <button type="button" className="button" onClick={() => dialog.current?.close()}>
                Close
              </button>
              <button type="submit" className="button primary" disabled={reading.isPending}>
                Fill the form
              </button>
            </div>
          </form>
        </dialog>,
        document.body,
      )}
    </>
  )
}
