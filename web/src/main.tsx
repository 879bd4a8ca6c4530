import { QueryClientProvider } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { queries } from './api/queries';
import { App } from './App';
import { resume } from './session/session';
import './styles.css';
import { startTheme } from './ui/theme';

const root = document.getElementById('root');
if (root === null) throw new Error('index.html has no #root element');

startTheme();
void resume();
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <App />
    </QueryClientProvider>
  </StrictMode>,
);
