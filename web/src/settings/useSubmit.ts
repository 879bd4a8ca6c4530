import { useState } from 'react';
import { RequestProblem } from '../api/http';
import { text } from '../text';

/** Runs a request, with its busy state and the error message of the hub. */
export function useSubmit() {
  const [problem, setProblem] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const attempt = async (work: () => Promise<unknown>) => {
    setBusy(true);
    setProblem(undefined);
    try {
      await work();
    } catch (failure) {
      setProblem(errorMessage(failure));
    } finally {
      setBusy(false);
    }
  };
  return { attempt, problem, isBusy };
}

function errorMessage(failure: unknown): string {
  if (!(failure instanceof RequestProblem)) return text.failed;
  const fields = Object.values(failure.fields);
  return fields.length > 0 ? fields.join(' ') : failure.message;
}
